#include "kernels/selftest/layers.h"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/element/random.h"
#include "kernels/layers/normalization.h"
#include "kernels/layers/spectral.h"
#include "kernels/layers/transformer_block.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/convolution.h"
#include "kernels/ops/pool.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/engine.h"

namespace memfathom::selftest {
namespace {

// Real GPUs round fp32 operands to TF32 in convolutions, as PyTorch lets them.
constexpr double kConvolutions = 1e-2;

std::vector<float> read(Device& device, const Tensor& tensor) {
  const Tensor dense = contiguous(tensor);
  const Bytes bytes = size_of(dense.shape(), dense.dtype());
  std::vector<float> values(static_cast<std::size_t>(bytes.count()) / sizeof(float));
  device.synchronize();
  device.copy_to_host(values.data(), dense.operand().data, bytes);
  return values;
}

template <typename Made>
Layer shared(Made made) {
  return [layer = std::make_shared<Made>(std::move(made))](const Tensor& x) { return (*layer)(x); };
}

LayerCase transformer_case(std::string name, BlockStyle style) {
  return {std::move(name), {2, 5, 16}, [style](Builder& builder) {
            TransformerBlockOptions options;
            options.style = style;
            options.hidden = 16;
            options.heads = options.kv_heads = 4;
            options.inner = 24;
            return shared(TransformerBlock(builder, options));
          }};
}

LayerCase operator_case(std::string name, FnoStyle style) {
  return {std::move(name),
          {2, 4, 8, 8},
          [style](Builder& builder) {
            return shared(FnoBlock(builder, {style, 4, {3, 3}, false, false}));
          },
          kConvolutions};
}

LayerCase convolution_case() {
  return {
      "conv-bn-relu-pool",
      {2, 3, 8, 8},
      [](Builder& builder) -> Layer {
        const Tensor weight = builder.parameter("weight", {4, 3, 3, 3});
        const Tensor bias = builder.parameter("bias", {4});
        const BatchNorm norm = make_batch_norm(builder, "norm", 4);
        return [=](const Tensor& x) {
          const Tensor y = convolution(x, weight, bias, {{1, 1}, {1, 1}, {1, 1}, {}, 1, false});
          return max_pool(activate(Activation::kRelu, norm(y)), {{2, 2}, {2, 2}, {0, 0}, false});
        };
      },
      kConvolutions};
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  return {transformer_case("llama", BlockStyle::kLlama),
          transformer_case("gpt2", BlockStyle::kGpt2),
          transformer_case("bert", BlockStyle::kBert),
          transformer_case("vit", BlockStyle::kVit),
          operator_case("fno classic", FnoStyle::kClassic),
          operator_case("fno neuralop", FnoStyle::kNeuralop),
          convolution_case()};
}

void fill(Device& device, const Tensor& tensor, std::uint64_t seed) {
  const Bytes bytes = size_of(tensor.shape(), tensor.dtype());
  std::vector<float> values(static_cast<std::size_t>(bytes.count()) / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element::uniform(seed, 0, i) - 0.5F;
  device.copy_from_host(tensor.operand().data, values.data(), bytes);
}

std::vector<std::vector<float>> run_layer(Session& session, const LayerCase& layer_case,
                                          const std::function<void()>& after_backward) {
  Device& device = session.device();
  Builder builder(session, {});
  const Layer layer = layer_case.make(builder);
  builder.finish();
  Tensor x = session.empty(layer_case.input, DType::kFp32);
  x.set_requires_grad(true);
  std::uint64_t seed = 1;
  fill(device, x, seed);
  for (const NamedTensor& parameter : builder.parameters()) fill(device, parameter.tensor, ++seed);
  for (const NamedTensor& buffer : builder.buffers()) fill(device, buffer.tensor, ++seed);
  std::vector<std::vector<float>> values;
  {
    const Tensor y = layer(x);
    run_backward(sum_all(mul(y, y)));
    if (device.computes()) values.push_back(read(device, y.detach()));
  }
  // Reading makes contiguous copies on some devices only: what is compared ends here.
  if (after_backward) after_backward();
  if (!device.computes()) return values;
  values.push_back(read(device, x.grad()));
  for (const Tensor& parameter : builder.trainable())
    values.push_back(read(device, parameter.grad()));
  return values;
}

double largest_difference(const std::vector<std::vector<float>>& got,
                          const std::vector<std::vector<float>>& wanted) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (got.size() != wanted.size()) return kNever;
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (got[i].size() != wanted[i].size()) return kNever;
    for (std::size_t j = 0; j < wanted[i].size(); ++j) {
      const double difference = std::abs(static_cast<double>(got[i][j]) - wanted[i][j]);
      if (!std::isfinite(difference)) return kNever;
      worst = std::max(worst, difference / (1 + std::abs(static_cast<double>(wanted[i][j]))));
    }
  }
  return worst;
}

}  // namespace memfathom::selftest
