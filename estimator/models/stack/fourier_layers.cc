// Layers of Fourier neural operators.
#include <fmt/format.h>

#include <memory>

#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/spectral.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::vector<std::int64_t> modes_of(const StackContext& context, const Node& spec) {
  const Node& node = spec.at("modes");
  const int dims = context.shape.rank() - 2;
  std::vector<std::int64_t> modes;
  if (node.is_list()) {
    modes = node.as_ints(1, kLargestExtent);
  } else {
    modes.assign(static_cast<std::size_t>(std::max(dims, 1)), node.as_int(1, kLargestExtent));
  }
  if (static_cast<int>(modes.size()) != dims || dims > 3) {
    node.refuse(
        fmt::format("it must have one number for each of the {} dimensions of the grid", dims));
  }
  return modes;
}

FnoStyle style_of(const Node& spec) {
  const Node* style = spec.find("style");
  return style != nullptr && style->as_choice({"classic", "neuralop"}) == 1 ? FnoStyle::kNeuralop
                                                                            : FnoStyle::kClassic;
}

Layer spectral_layer(StackContext& context, const Node& spec) {
  const std::int64_t in = extent_or(spec, "in", context.shape[1]);
  const std::int64_t out = extent_or(spec, "out", in);
  const PathScope scope(context.builder, "spectral_conv");
  const auto layer = std::make_shared<SpectralConv>(context.builder, style_of(spec), in, out,
                                                    modes_of(context, spec));
  context.shape[1] = out;
  return [layer](const Tensor& x) { return (*layer)(x); };
}

Layer fno_block_layer(StackContext& context, const Node& spec) {
  FnoBlockOptions options;
  options.style = style_of(spec);
  options.width = extent_or(spec, "width", context.shape[1]);
  options.modes = modes_of(context, spec);
  options.last = flag_or(spec, "last", false);
  options.group_norm =
      spec.find("norm") != nullptr && spec.at("norm").as_choice({"group_norm"}) == 0;
  const PathScope scope(context.builder, "fno_block");
  const auto block = std::make_shared<FnoBlock>(context.builder, options);
  return [block](const Tensor& x) { return (*block)(x); };
}

// A channel of coordinates per dimension; they are made by the first forward pass, stay resident
// and are repeated for the batch.
Layer grid_embedding_layer(StackContext& context, const Node& spec) {
  const std::int64_t dims = extent_of(spec, "dims");
  if (dims != context.shape.rank() - 2)
    spec.at("dims").refuse("it must be the number of dimensions of the grid");
  Shape grid = context.shape;
  grid[0] = 1;
  grid[1] = 1;
  context.shape[1] += dims;
  const DType dtype = context.settings.precision;
  const auto coordinates = std::make_shared<std::vector<Tensor>>();
  return [=](const Tensor& x) {
    Session& session = x.session();
    if (coordinates->empty()) {
      const ComponentScope scope(session, Component::kInputs);
      for (std::int64_t i = 0; i < dims; ++i) coordinates->push_back(session.zeros(grid, dtype));
    }
    std::vector<Tensor> parts{x};
    for (const Tensor& axis : *coordinates) {
      Shape wide = axis.shape();
      wide[0] = x.size(0);
      parts.push_back(session.empty(wide, axis.dtype()));
    }
    return cat(parts, 1);
  };
}

}  // namespace

const std::vector<LayerType>& fourier_layer_types() {
  static const std::vector<LayerType> kTypes{
      {"spectral_conv", {"in", "out", "modes", "style"}, spectral_layer},
      {"fno_block", {"style", "width", "modes", "last", "norm"}, fno_block_layer},
      {"grid_embedding", {"dims"}, grid_embedding_layer},
  };
  return kTypes;
}

}  // namespace memfathom
