// Combinators: residual, concat, checkpoint. (`repeat` is unrolled where lists are read.)
#include <fmt/format.h>

#include <memory>

#include "core/error.h"
#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/checkpoint.h"

namespace memfathom {
namespace {

using SharedLayers = std::shared_ptr<const std::vector<Layer>>;

SharedLayers shared_layers(StackContext& context, const Node& list) {
  return std::make_shared<const std::vector<Layer>>(make_layers(context, list));
}

Layer residual_layer(StackContext& context, const Node& spec) {
  const Shape before = context.shape;
  SharedLayers shortcut;
  if (const Node* node = spec.find("shortcut"); node != nullptr && !node->is_null()) {
    shortcut = shared_layers(context, *node);
  }
  const Shape beside = context.shape;
  context.shape = before;
  const SharedLayers layers = shared_layers(context, spec.at("layers"));
  if (!(context.shape == beside)) {
    spec.refuse(fmt::format(
        "its layers end in {} and its shortcut in {}; they are added, so they must agree",
        to_string(context.shape), to_string(beside)));
  }
  return [layers, shortcut](const Tensor& x) {
    const Tensor kept = shortcut ? run_layers(*shortcut, x) : x;
    const Tensor out = run_layers(*layers, x);
    return add(out, kept);
  };
}

Layer concat_layer(StackContext& context, const Node& spec) {
  const Shape before = context.shape;
  std::vector<SharedLayers> branches;
  std::int64_t total = 0;
  Shape joined = before;
  for (const Node& branch : spec.at("branches").items()) {
    context.shape = before;
    branches.push_back(shared_layers(context, branch));
    total += context.shape[1];
    joined = context.shape;
  }
  if (branches.empty()) spec.at("branches").refuse("it must have at least one branch");
  joined[1] = total;
  context.shape = joined;
  return [branches](const Tensor& x) {
    std::vector<Tensor> parts;
    for (const SharedLayers& branch : branches) parts.push_back(run_layers(*branch, x));
    return cat(parts, 1);
  };
}

Layer checkpoint_layer(StackContext& context, const Node& spec) {
  const SharedLayers layers = shared_layers(context, spec.at("layers"));
  const bool reentrant = context.settings.checkpoint_reentrant;
  return [layers, reentrant](const Tensor& x) {
    const CheckpointedFunction segment = [layers](const Tensor& input) {
      return run_layers(*layers, input);
    };
    return reentrant ? checkpoint_reentrant(segment, x) : checkpoint(segment, x);
  };
}

}  // namespace

const std::vector<LayerType>& combinator_types() {
  static const std::vector<LayerType> kTypes{
      {"residual", {"layers", "shortcut"}, residual_layer},
      {"concat", {"branches"}, concat_layer},
      {"checkpoint", {"layers"}, checkpoint_layer},
  };
  return kTypes;
}

}  // namespace memfathom
