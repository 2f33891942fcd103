#include "estimator/models/model_spec.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace memfathom {
namespace {

bool is_norm(const Node& layer) {
  static constexpr std::array<std::string_view, 5> kNorms{"layer_norm", "rms_norm", "group_norm",
                                                          "batch_norm", "instance_norm"};
  const Node* type = layer.find("type");
  return type != nullptr && type->is_string() &&
         std::find(kNorms.begin(), kNorms.end(), type->as_string()) != kNorms.end();
}

}  // namespace

void TrainSpec::apply(BuildOptions& options) const {
  if (subset == TrainableSubset::kLora && !options.lora)
    source.refuse("it needs training.lora, which says rank and targets");
  options.train = subset;
  options.last_blocks = last_blocks;
  options.adapter_rank = adapter_rank;
}

bool LayerStack::input_wants_gradient() const {
  const Node* input = model.find("input");
  if (input == nullptr || !input->is_map()) return false;
  const Node* wanted = input->find("requires_grad");
  const Node* source = input->find("source");
  const bool is_leaf = source == nullptr || source->as_string() == "batch";
  return wanted != nullptr && wanted->as_bool() && is_leaf;
}

bool LayerStack::has_only_norms() const {
  const std::vector<Node>& layers = model.at("layers").items();
  return !layers.empty() && std::all_of(layers.begin(), layers.end(), is_norm);
}

ModelSpec::ModelSpec() {
  static const auto kNone = std::make_shared<const Data>();
  data_ = kNone;
}

ModelSpec::ModelSpec(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}

const Node& ModelSpec::source() const { return data_->source; }

const LayerStack* ModelSpec::layers() const { return std::get_if<LayerStack>(&data_->form); }

const NetworkConfig* ModelSpec::config() const { return std::get_if<NetworkConfig>(&data_->form); }

const PresetNetwork* ModelSpec::preset() const { return std::get_if<PresetNetwork>(&data_->form); }

const ModuleList* ModelSpec::modules() const { return std::get_if<ModuleList>(&data_->form); }

const Trace* ModelSpec::trace() const { return std::get_if<Trace>(&data_->form); }

const std::optional<ModelPart>& ModelSpec::part() const { return data_->part; }

const std::optional<TrainSpec>& ModelSpec::train() const { return data_->train; }

const std::optional<Bytes>& ModelSpec::loaded_shard() const { return data_->loaded_shard; }

ModelSpec ModelSpec::with_config(Node config) const {
  Data changed;
  changed.source = data_->source;
  changed.train = data_->train;
  changed.loaded_shard = data_->loaded_shard;
  NetworkConfig own{std::move(config), {}, {}};
  if (const NetworkConfig* whole = this->config()) own.stored = whole->stored;
  changed.form = std::move(own);
  return ModelSpec(std::move(changed));
}

}  // namespace memfathom
