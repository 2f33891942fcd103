#include "estimator/models/resolve_model.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "estimator/models/grid_presets.h"
#include "estimator/models/preset_names.h"
#include "estimator/models/presets.h"
#include "estimator/models/registry.h"

namespace memfathom {

// The words of `train`; {last: n} is the other way to say it.
enum class TrainWord : std::uint8_t { kFull, kFrozen, kLora, kAdapter };

template <>
inline constexpr auto kEnumNames<TrainWord> =
    std::to_array<EnumName<TrainWord>>({{TrainWord::kFull, "full"},
                                        {TrainWord::kFrozen, "frozen"},
                                        {TrainWord::kLora, "lora"},
                                        {TrainWord::kAdapter, "adapter"}});

namespace {

constexpr std::size_t kMaxModules = 1000;

// Paths are relative to the file that names them.
std::filesystem::path path_in(const Node& node) {
  std::filesystem::path path = node.as_string();
  const std::string file = node.file();
  if (path.is_absolute() || file.empty() || file == "-") return path;
  return std::filesystem::path(file).parent_path() / path;
}

// The folder that a configuration was read from; empty for one that stands in the job itself.
std::filesystem::path folder_of(const Node& config) {
  const std::filesystem::path file = config.file();
  return file.filename() == "config.json" ? file.parent_path() : std::filesystem::path();
}

NetworkConfig resolve_config(Node config, const ModelFiles& files) {
  NetworkConfig resolved{std::move(config), {}, {}};
  if (!resolved.config.file().empty() && !can_make(resolved.config))
    resolved.stored = files.stored_tensors(folder_of(resolved.config));
  return resolved;
}

// `node` says what is trained: the job's model, or one of its modules.
std::optional<TrainSpec> read_train(const Node& node) {
  const Node* train = node.find("train");
  if (train == nullptr) return std::nullopt;
  TrainSpec spec;
  spec.source = *train;
  if (train->is_map()) {
    spec.subset = TrainableSubset::kLast;
    spec.last_blocks = train->at("last").as_int(0, 1 << 20);
    return spec;
  }
  switch (train->as_enum<TrainWord>()) {
    case TrainWord::kFull: spec.subset = TrainableSubset::kFull; break;
    case TrainWord::kFrozen: spec.subset = TrainableSubset::kFrozen; break;
    case TrainWord::kLora: spec.subset = TrainableSubset::kLora; break;
    case TrainWord::kAdapter: {
      spec.subset = TrainableSubset::kFrozen;
      const Node& adapter = node.at("adapter");
      adapter.check_keys({"rank"});
      spec.adapter_rank = adapter.at("rank").as_int(1, std::int64_t{1} << 30);
      break;
    }
  }
  return spec;
}

std::optional<Bytes> read_load(const Node& model) {
  const Node* load = model.find("load");
  if (load == nullptr || load->is_null()) return std::nullopt;
  load->check_keys({"shard", "device"});
  const Node* device = load->find("device");
  if (device != nullptr && device->as_choice({"cpu", "cuda"}) == 0) return std::nullopt;
  return load->at("shard").as_bytes();
}

void refuse_classes(const Node& model) {
  if (const Node* classes = model.find("num_classes"))
    classes->refuse("only the presets of torchvision's and timm's classifiers have it");
}

// The preset's configuration with as many classes as the job wants.
Node with_classes(Node config, const Node& model) {
  const Node* classes = model.find("num_classes");
  if (classes == nullptr) return config;
  const ModelFamily* family = find_family(config);
  if (family == nullptr || !family->traits.is_classifier) refuse_classes(model);
  config.set("num_classes", *classes);
  return config;
}

// One network: everything but modules and traces.
ModelSpec::Data resolve_network(const Node& model, const ModelFiles& files) {
  ModelSpec::Data data;
  data.source = model;
  if (const Node* part = model.find("part")) data.part = part->as_enum<ModelPart>();
  if (model.find("layers") != nullptr) {
    data.form = LayerStack{model};
  } else if (const Node* config = model.find("config")) {
    data.form = resolve_config(load_config(*config, files), files);
  } else if (const Node* preset = model.find("preset")) {
    const std::string& name = preset->as_string();
    if (std::optional<Node> published = preset_config(name)) {
      refuse_classes(model);
      data.form = resolve_config(std::move(*published), files);
    } else if (std::optional<Node> partial = partial_preset_config(normalized_preset(name))) {
      data.form = PresetNetwork{with_classes(std::move(*partial), model)};
    } else {
      preset->refuse(unknown_preset(name));
    }
  } else if (const Node* parameters = model.find("parameters")) {
    NetworkConfig assumed;
    assumed.config = config_for_parameters(parameters->as_number(1e3, 1e15), assumed.assumptions);
    data.form = std::move(assumed);
  } else {
    model.refuse("this way of naming a model cannot be built on its own");
  }
  return data;
}

ModuleList resolve_modules(const Node& list, const ModelFiles& files) {
  if (list.items().empty() || list.items().size() > kMaxModules)
    list.refuse("it must be a list of 1 to 1000 modules");
  ModuleList resolved;
  resolved.source = list;
  for (const Node& module : list.items()) {
    ModuleSpec spec;
    spec.source = module;
    const Node* name = module.find("name");
    spec.name =
        name != nullptr ? name->as_string() : fmt::format("module {}", resolved.modules.size() + 1);
    if (const Node* no_grad = module.find("no_grad")) spec.no_grad = no_grad->as_bool();
    spec.train = read_train(module);
    spec.model = ModelSpec(resolve_network(module.at("model"), files));
    resolved.modules.push_back(std::move(spec));
  }
  return resolved;
}

}  // namespace

Node ModelFiles::config(const std::filesystem::path& path) const {
  std::error_code unreadable;  // load_document says why
  const bool is_folder = std::filesystem::is_directory(path, unreadable);
  return load_document((is_folder ? path / "config.json" : path).string());
}

std::vector<StoredTensor> ModelFiles::stored_tensors(const std::filesystem::path& folder) const {
  return memfathom::stored_tensors(folder);
}

Trace ModelFiles::trace(const std::filesystem::path& path, const TraceSizes& sizes) const {
  return load_trace(path.string(), {}, sizes);
}

Node load_config(const Node& config, const ModelFiles& files) {
  return config.is_map() ? config : files.config(path_in(config));
}

ModelSpec resolve_model(const Node& model, const ModelFiles& files, const TraceSizes& sizes) {
  ModelSpec::Data data;
  if (const Node* trace = model.find("trace")) {
    data.source = model;
    data.form = files.trace(path_in(*trace), sizes);
    return ModelSpec(std::move(data));
  }
  if (const Node* modules = model.find("modules")) {
    data.source = model;
    data.form = resolve_modules(*modules, files);
  } else {
    std::optional<TrainSpec> train = read_train(model);
    data = resolve_network(model, files);
    data.train = std::move(train);
  }
  data.loaded_shard = read_load(model);
  return ModelSpec(std::move(data));
}

}  // namespace memfathom
