#include "kernels/workspaces/fit/design.h"

#include <array>
#include <cmath>
#include <span>

#include "core/pytorch_convolution.h"
#include "kernels/workspaces/convolution_sizes.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxTensorBytes = std::int64_t{2} << 30;

class ShapeSampler {
 public:
  explicit ShapeSampler(std::mt19937_64& random) : random_(random) {}

  // Plain arithmetic on the engine's bits: the same table on every standard library.
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool one_in(int n) { return unit() * n < 1; }
  std::int64_t of(std::span<const std::int64_t> values) {
    return values[static_cast<std::size_t>(unit() * static_cast<double>(values.size()))];
  }
  std::int64_t log_uniform(double low, double high) {
    return static_cast<std::int64_t>(std::lround(low * std::pow(high / low, unit())));
  }

 private:
  std::mt19937_64& random_;
};

constexpr std::array<std::int64_t, 10> kChannels{16, 32, 48, 64, 96, 128, 192, 256, 512, 1024};
constexpr std::array<std::int64_t, 9> kBatches{1, 2, 4, 8, 16, 32, 48, 64, 128};
constexpr std::array<std::int64_t, 11> kExtents{7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224};
constexpr std::array<std::int64_t, 9> kKernels{1, 1, 1, 3, 3, 3, 3, 5, 7};

std::int64_t draw_channels(ShapeSampler& sampler) {
  return sampler.one_in(2) ? sampler.of(kChannels) : sampler.log_uniform(8, 768);
}

ConvolutionQuery draw_any(ShapeSampler& sampler, const DesignClass& of) {
  ConvolutionQuery query{.kind = of.kind, .channels_last = of.channels_last, .dtype = of.dtype};
  const double dimension = sampler.unit();
  const int spatial = dimension < 0.86 ? 2 : dimension < 0.94 ? 3 : 1;
  std::int64_t in = draw_channels(sampler);
  std::int64_t out = sampler.one_in(4) ? in : draw_channels(sampler);
  if (sampler.one_in(10)) in = sampler.one_in(3) ? 1 : 3;
  if (sampler.one_in(10)) {
    constexpr std::array<std::int64_t, 5> kGroups{2, 4, 8, 16, 32};
    query.groups = sampler.one_in(2) ? in : sampler.of(kGroups);
    in = (in + query.groups - 1) / query.groups * query.groups;
    out = query.groups == in ? in : (out + query.groups - 1) / query.groups * query.groups;
  }
  const std::int64_t batch = sampler.one_in(2) ? sampler.of(kBatches) : sampler.log_uniform(1, 160);
  const std::int64_t kernel = spatial == 3 && sampler.one_in(2) ? 3 : sampler.of(kKernels);
  const std::int64_t stride = sampler.one_in(4) ? 2 : sampler.one_in(40) ? 4 : 1;
  const std::int64_t dilation = kernel > 1 && sampler.one_in(25) ? 2 : 1;
  query.input = {batch, in};
  query.weight = {out, in / query.groups};
  const std::int64_t side = sampler.one_in(2) ? sampler.of(kExtents) : sampler.log_uniform(5, 256);
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t extent = spatial == 3   ? std::min<std::int64_t>(side, 64)
                                : spatial == 1 ? side * 16
                                               : side;
    query.input.push_back(extent);
    query.weight.push_back(kernel);
    query.stride.push_back(stride);
    query.padding.push_back(kernel / 2 * dilation);
    query.dilation.push_back(dilation);
  }
  return query;
}

}  // namespace

ConvolutionQuery draw_convolution(std::mt19937_64& random, const DesignClass& of) {
  ShapeSampler sampler(random);
  while (true) {
    const ConvolutionQuery query = draw_any(sampler, of);
    if (query.input.rank() == 3 && of.channels_last) continue;
    const std::optional<ConvolutionProfile> measured = measure(query);
    if (!measured || measured->sizes.input > kMaxTensorBytes ||
        measured->sizes.output > kMaxTensorBytes)
      continue;
    if (pytorch_uses_cudnn(query)) return query;
  }
}

}  // namespace memfathom
