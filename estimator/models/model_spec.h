// ModelSpec: the model of a job (docs/contract.md §3), resolved: every file it names is read and
// every document in it is parsed, so that building it opens no file.
//
// A ModelSpec is made by resolve_model() and never changes; copies share what was resolved, also
// between threads. Hundreds of candidates of a search cost one reading of config.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/stored/stored_tensors.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

// What of a network is trained: `train` and `adapter`.
struct TrainSpec {
  TrainableSubset subset = TrainableSubset::kFull;
  std::int64_t last_blocks = 0;   // kLast
  std::int64_t adapter_rank = 0;  // above 0: kFrozen, with an adapter after each block
  Node source;                    // `train` as it was written, for errors

  void apply(BuildOptions& options) const;  // throws for kLora where the job has no LoRA
};

// `layers`, with `input` and `loss` next to it.
struct LayerStack {
  Node model;

  // Whether the input is a leaf that wants a gradient, as a benchmark of layers has it.
  bool input_wants_gradient() const;
  bool has_only_norms() const;
};

// `config`, `parameters`, or a preset that is published as a configuration.
struct NetworkConfig {
  Node config;
  std::vector<StoredTensor> stored;      // of the weights next to it, where no family is known
  std::vector<std::string> assumptions;  // made to get at the configuration
};

// A preset that is not published as a configuration of its own.
struct PresetNetwork {
  Node config;  // the keys that differ from its library's defaults
};

struct ModuleSpec;

// `modules`.
struct ModuleList {
  std::vector<ModuleSpec> modules;
  Node source;  // for errors
};

class ModelSpec {
 public:
  struct Data;

  ModelSpec();  // no model at all: a job that is not run
  explicit ModelSpec(Data data);

  // As it was written: for advice that changes it, and for errors.
  const Node& source() const;

  // One of these is there, the others are null.
  const LayerStack* layers() const;
  const NetworkConfig* config() const;
  const PresetNetwork* preset() const;
  const ModuleList* modules() const;
  const Trace* trace() const;

  const std::optional<ModelPart>& part() const;
  const std::optional<TrainSpec>& train() const;     // absent: LoRA where the job has it, else all
  const std::optional<Bytes>& loaded_shard() const;  // of weights that are loaded onto the GPU

  // The same model with another configuration: one GPU's part of it, whole in itself.
  ModelSpec with_config(Node config) const;

  bool shares_data_with(const ModelSpec& other) const { return data_ == other.data_; }

 private:
  std::shared_ptr<const Data> data_;
};

struct ModuleSpec {
  std::string name;
  ModelSpec model;
  std::optional<TrainSpec> train;
  bool no_grad = false;
  Node source;  // with the training keys that the module overrides
};

struct ModelSpec::Data {
  Node source;
  std::variant<std::monostate, LayerStack, NetworkConfig, PresetNetwork, ModuleList, Trace> form;
  std::optional<ModelPart> part;
  std::optional<TrainSpec> train;
  std::optional<Bytes> loaded_shard;
};

}  // namespace memfathom
