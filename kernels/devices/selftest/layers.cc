#include "kernels/devices/selftest/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/devices/element/load.h"
#include "kernels/devices/element/random.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/engine.h"

namespace memfathom::selftest {
namespace {

std::vector<float> read(Device& device, const Tensor& tensor) {
  const Tensor dense = contiguous(tensor);
  const Bytes bytes = size_of(dense.shape(), dense.dtype());
  std::vector<float> content(static_cast<std::size_t>(bytes.count() + 3) / sizeof(float));
  device.synchronize();
  device.copy_to_host(content.data(), dense.operand().data, bytes);
  if (!is_16bit_float(dense.dtype())) return content;  // complex numbers as pairs
  std::vector<float> values;
  for (std::int64_t i = 0; i < dense.elements(); ++i)
    values.push_back(element::load<float>(content.data(), dense.dtype(), i));
  return values;
}

}  // namespace

void fill(Device& device, const Tensor& tensor, std::uint64_t seed) {
  const Bytes bytes = size_of(tensor.shape(), tensor.dtype());
  // Complex numbers are filled as pairs.
  const bool pairs = is_complex(tensor.dtype());
  const DType type = pairs ? DType::kFp32 : tensor.dtype();
  const std::int64_t numbers = tensor.elements() * (pairs ? 2 : 1);
  std::vector<float> content(static_cast<std::size_t>(bytes.count() + 3) / sizeof(float));
  for (std::int64_t i = 0; i < numbers; ++i) {
    const float value = element::uniform(seed, 0, static_cast<std::uint64_t>(i)) - 0.5F;
    element::store<float>(content.data(), type, i, value);
  }
  device.copy_from_host(tensor.operand().data, content.data(), bytes);
}

std::vector<std::vector<float>> run_layer(Session& session, const LayerCase& layer_case,
                                          const std::function<void()>& after_backward) {
  Device& device = session.device();
  Builder builder(session, {.dtype = layer_case.dtype});
  const TestLayer layer = layer_case.make(builder);
  builder.finish();
  Tensor x = session.empty(layer_case.input, layer_case.dtype);
  x.set_requires_grad(true);
  std::uint64_t seed = 1;
  fill(device, x, seed);
  for (const NamedTensor& parameter : builder.parameters()) fill(device, parameter.tensor, ++seed);
  for (const NamedTensor& buffer : builder.buffers()) fill(device, buffer.tensor, ++seed);
  const Tensor y = layer(x);
  run_backward(sum_all(mul(y, y)));
  // Reading back makes contiguous copies on devices that compute, so the memory comparison ends
  // here.
  if (after_backward) after_backward();
  if (!device.computes()) return {};
  std::vector<std::vector<float>> values{read(device, y.detach())};
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
