// The cpu device's hot paths: how long one call takes, so that a slow loop is seen before a profile
// takes an hour.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/element/split.h"

namespace memfathom {
namespace {

struct Tensor {
  std::vector<float> values;
  Operand operand;

  explicit Tensor(const Shape& shape, DType dtype = DType::kFp32)
      : values(static_cast<std::size_t>(shape.elements()), 0.5f),
        operand{values.data(), dtype, shape, element::contiguous_strides(shape)} {}
};

void count(benchmark::State& state, const Tensor& tensor) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tensor.values.size()));
}

void gelu(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({1024, 1024}, static_cast<DType>(state.range(0))),
      y({1024, 1024}, static_cast<DType>(state.range(0)));
  for (auto _ : state)
    device.run(ElementwiseCall{Elementwise::kGelu, y.operand, x.operand, {}, {}, {}});
  count(state, x);
}
BENCHMARK(gelu)->Arg(static_cast<int>(DType::kFp32))->Arg(static_cast<int>(DType::kBf16));

void add(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({1024, 1024}), y({1024, 1024});
  for (auto _ : state)
    device.run(ElementwiseCall{Elementwise::kAdd, y.operand, x.operand, y.operand, {}, {1}});
  count(state, x);
}
BENCHMARK(add);

void softmax(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({1024, 1024}), y({1024, 1024});
  for (auto _ : state)
    device.run(SoftmaxCall{
        Softmax::kSoftmax, false, static_cast<int>(state.range(0)), y.operand, x.operand, {}});
  count(state, x);
}
BENCHMARK(softmax)->Arg(1)->Arg(0);

void batch_norm(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({8, 64, 56, 56}), y({8, 64, 56, 56}), mean({64}), rstd({64}), weight({64});
  NormCall call;
  call.op = Norm::kBatch;
  call.x = x.operand;
  call.y = y.operand;
  call.mean = mean.operand;
  call.rstd = rstd.operand;
  call.weight = weight.operand;
  call.bias = weight.operand;
  for (auto _ : state) device.run(call);
  count(state, x);
}
BENCHMARK(batch_norm);

void max_pool(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({8, 64, 112, 112}), y({8, 64, 56, 56});
  PoolCall call{Pool::kMax, false, {3, 3}, {2, 2}, {1, 1}, true, x.operand, y.operand, {}, {}, {}};
  for (auto _ : state) device.run(call);
  count(state, x);
}
BENCHMARK(max_pool);

void matrix_product(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor a({512, 768}), b({768, 3072}), out({512, 3072});
  for (auto _ : state) device.run(GemmCall{out.operand, a.operand, b.operand, {}});
  state.SetItemsProcessed(state.iterations() * 2 * 512 * 768 * 3072);
}
BENCHMARK(matrix_product);

void convolution(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor x({4, 64, 56, 56}), w({64, 64, 3, 3}), y({4, 64, 56, 56});
  ConvolutionCall call;
  call.query = {static_cast<ConvolutionKind>(state.range(0)),
                {4, 64, 56, 56},
                {64, 64, 3, 3},
                {1, 1},
                {1, 1},
                {},
                {1, 1}};
  call.x = call.dx = x.operand;
  call.w = call.dw = w.operand;
  call.y = call.dy = y.operand;
  for (auto _ : state) device.run(call);
  state.SetItemsProcessed(state.iterations() * 2 * 4 * 64 * 64 * 9 * 56 * 56);
}
BENCHMARK(convolution)->DenseRange(0, 2);

void attention(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor q({1, 12, 512, 64}), out({1, 12, 512, 64}), logsumexp({1, 12, 512});
  AttentionCall call;
  call.q = call.k = call.v = q.operand;
  call.out = out.operand;
  call.logsumexp = logsumexp.operand;
  for (auto _ : state) device.run(call);
  state.SetItemsProcessed(state.iterations() * 4 * 12 * 512 * 512 * 64);
}
BENCHMARK(attention);

void adamw(benchmark::State& state) {
  CpuDevice device{Bytes{1 << 20}};
  const Tensor p({1 << 20}), g({1 << 20}), m({1 << 20}), v({1 << 20});
  OptimizerCall call;
  call.op = Optimizer::kAdamW;
  call.parameter = p.operand;
  call.gradient = g.operand;
  call.state1 = m.operand;
  call.state2 = v.operand;
  for (auto _ : state) device.run(call);
  count(state, p);
}
BENCHMARK(adamw);

}  // namespace
}  // namespace memfathom

BENCHMARK_MAIN();
