#include "estimator/models/factory.h"

#include "estimator/models/registry.h"
#include "estimator/models/stack/stack_network.h"
#include "estimator/models/stored/stored_network.h"

namespace memfathom {
namespace {

std::unique_ptr<Network> from_config(Builder& builder, const NetworkConfig& model,
                                     const ModelSettings& settings,
                                     std::vector<std::string>& assumptions) {
  const Node& config = model.config;
  assumptions.insert(assumptions.end(), model.assumptions.begin(), model.assumptions.end());
  if (std::unique_ptr<Network> network = make_from_family(builder, config, settings, assumptions))
    return network;
  if (!model.stored.empty())
    return make_stored_network(builder, config, model.stored, settings, assumptions);
  const Node* type = config.find("model_type");
  if (type == nullptr) type = config.find("_class_name");
  if (type == nullptr)
    config.refuse(
        "it has no model_type (transformers) or _class_name (diffusers), so its family is unknown, "
        "and there is no model.safetensors (or its index) next to it to read the shapes from");
  type->refuse(
      "this family is not known, and there is no model.safetensors (or its index) next to the "
      "config to read the shapes from; use `memfathom estimate --via torch` to record its step "
      "with your transformers, diffusers or timm, `memfathom capture train.py` to record that of "
      "your script (for `model.trace`), or describe it with `model.layers`; `memfathom models` "
      "lists the known families");
}

}  // namespace

std::unique_ptr<Network> make_network(Builder& builder, const ModelSpec& model,
                                      const ModelSettings& given,
                                      std::vector<std::string>& assumptions) {
  ModelSettings settings = given;
  if (model.part()) settings.part = *model.part();
  if (const LayerStack* stack = model.layers())
    return make_stack_network(builder, stack->model, settings);
  if (const NetworkConfig* config = model.config())
    return from_config(builder, *config, settings, assumptions);
  if (const PresetNetwork* preset = model.preset())
    return make_from_family(builder, preset->config, settings, assumptions);
  model.source().refuse("this way of naming a model cannot be built on its own");
}

}  // namespace memfathom
