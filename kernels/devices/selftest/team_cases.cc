#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

// A block has 256 threads, a warp 32: rows that are shorter, as long, a little longer, and longer
// than that more than once.
constexpr std::int64_t kLengths[] = {7, 32, 33, 256, 257, 600};

void reductions(Harness& harness, DType type, std::int64_t n) {
  for (const Reduction op : {Reduction::kSum, Reduction::kMean, Reduction::kMax}) {
    Tensors t;
    harness.compare(
        fmt::format("team of {} {} reduce {}", n, to_string(type), static_cast<int>(op)),
        ReduceCall{op, t.filled(type, {2, 1}, 0), t.uniform(type, {2, n})}, {&ReduceCall::out});
  }
}

void softmaxes(Harness& harness, DType type, std::int64_t n) {
  for (const Softmax op : {Softmax::kSoftmax, Softmax::kLogSoftmax}) {
    Tensors t;
    const Shape shape{2, n};
    SoftmaxCall call{op, false, -1, t.filled(type, shape, 0), t.uniform(type, shape, -5, 5), {}};
    const std::string name =
        fmt::format("team of {} {} softmax {}", n, to_string(type), static_cast<int>(op));
    harness.compare(name, call, {&SoftmaxCall::out});
    run_reference(call);
    harness.compare(
        name + " backward",
        SoftmaxCall{op, true, -1, t.filled(type, shape, 0), t.uniform(type, shape), call.out},
        {&SoftmaxCall::out});
  }
}

void norms(Harness& harness, DType type, std::int64_t n) {
  for (const Norm op : {Norm::kLayer, Norm::kRms, Norm::kBatch}) {
    // Statistics of a batch norm's channel are over the batch.
    const bool batch = op == Norm::kBatch;
    const Shape shape = batch ? Shape{n, 2, 1} : Shape{2, n};
    const std::int64_t features = shape[1];
    Tensors t;
    NormCall call;
    call.op = op;
    call.x = t.uniform(type, shape, -1, 3);
    call.y = t.filled(type, shape, 0);
    call.weight = t.uniform(type, {features}, 0.5, 1.5);
    const DType figures = type == DType::kFp64 ? DType::kFp64 : DType::kFp32;
    if (op != Norm::kRms) call.mean = t.filled(figures, {2}, 0);
    call.rstd = t.filled(figures, {2}, 0);
    const std::string name =
        fmt::format("team of {} {} norm {}", n, to_string(type), static_cast<int>(op));
    harness.compare(name, call, {&NormCall::y, &NormCall::mean, &NormCall::rstd});
    run_reference(call);
    call.backward = true;
    call.y = {};
    call.dy = t.uniform(type, shape);
    call.dx = t.filled(type, shape, 0);
    if (batch) call.dweight = t.filled(type, {features}, 0);
    harness.compare(name + " backward", call, {&NormCall::dx, &NormCall::dweight});
  }
}

void losses(Harness& harness, DType type, std::int64_t n) {
  Tensors t;
  NllCall call;
  call.ignore_index = 2;
  call.log_probabilities = t.uniform(type, {n, 5}, -3, 0);
  call.target = t.uniform(DType::kInt64, {n}, 0, 5);
  call.loss = t.filled(type, {}, 0);
  call.total_weight = t.filled(type, {}, 0);
  harness.compare(fmt::format("team of {} {} nll", n, to_string(type)), call,
                  {&NllCall::loss, &NllCall::total_weight});
}

// Heads around a warp's width; more queries than a block has warps.
void attentions(Harness& harness, DType type, std::int64_t width) {
  Tensors t;
  AttentionCall call;
  call.kernel = AttentionKernel::kEfficient;
  call.causal = true;
  call.scale = 0.2;
  const Shape shape{1, 1, 9, width};
  call.q = t.uniform(type, shape);
  call.k = t.uniform(type, shape);
  call.v = t.uniform(type, shape);
  call.out = t.filled(type, shape, 0);
  call.logsumexp = t.filled(type == DType::kFp64 ? type : DType::kFp32, {1, 1, 9}, 0);
  const std::string name = fmt::format("team attention {} width {}", to_string(type), width);
  harness.compare(name, call, {&AttentionCall::out, &AttentionCall::logsumexp});
  run_reference(call);
  call.backward = true;
  call.dout = t.uniform(type, shape);
  call.dq = t.filled(type, shape, 0);
  call.dk = t.filled(type, shape, 0);
  call.dv = t.filled(type, shape, 0);
  harness.compare(name + " backward", call,
                  {&AttentionCall::dq, &AttentionCall::dk, &AttentionCall::dv});
}

// One thread an element, more elements than threads.
void elements(Harness& harness, DType type) {
  const std::string of_type(to_string(type));
  Tensors t;
  const Shape shape{3, 1, 20, 11};
  harness.compare(
      "team elements gelu " + of_type,
      ElementwiseCall{
          Elementwise::kGelu, t.filled(type, shape, 0), t.uniform(type, shape), {}, {}, {}},
      {&ElementwiseCall::out});
  DropoutCall dropout{0.25,
                      7,
                      99,
                      t.uniform(type, shape),
                      t.filled(type, shape, 0),
                      t.filled(DType::kBool, shape, 0)};
  harness.compare("team elements dropout " + of_type, dropout,
                  {&DropoutCall::y, &DropoutCall::mask});
  OptimizerCall adam;
  adam.op = Optimizer::kAdamW;
  adam.weight_decay = 0.01;
  adam.parameter = t.uniform(type, shape);
  adam.gradient = t.uniform(type, shape);
  adam.state1 = t.uniform(type, shape);
  adam.state2 = t.uniform(type, shape, 0, 1);
  harness.compare("team elements adamw " + of_type, adam,
                  {&OptimizerCall::parameter, &OptimizerCall::state1, &OptimizerCall::state2});
  PoolCall pool;
  pool.kernel = pool.stride = {2, 1};
  pool.padding = {0, 0};
  pool.x = t.uniform(type, shape);
  pool.y = t.filled(type, {3, 1, 10, 11}, 0);
  pool.indices = t.filled(DType::kInt64, {3, 1, 10, 11}, 0);
  harness.compare("team elements max pool " + of_type, pool, {&PoolCall::y, &PoolCall::indices});
  run_reference(pool);
  pool.backward = true;
  pool.y = {};
  pool.dy = t.uniform(type, {3, 1, 10, 11});
  pool.dx = t.filled(type, shape, 0);
  harness.compare("team elements max pool " + of_type + " backward", pool, {&PoolCall::dx});
  for (const bool backward : {false, true}) {
    const Shape large{3, 1, 40, 22};
    harness.compare(
        fmt::format("team elements upsample {}{}", of_type, backward ? " backward" : ""),
        UpsampleCall{Upsample::kBilinear, backward, t.uniform(type, backward ? large : shape),
                     t.filled(type, backward ? shape : large, 0)},
        {&UpsampleCall::out});
  }
  EmbeddingCall embedding;
  embedding.table = t.uniform(type, {6, 300});
  embedding.index = t.uniform(DType::kInt64, {5}, 0, 6);
  embedding.out = t.filled(type, {5, 300}, 0);
  harness.compare("team elements embedding " + of_type, embedding, {&EmbeddingCall::out});
  embedding.backward = true;
  embedding.out = t.uniform(type, {5, 300});
  embedding.table = t.filled(type, {6, 300}, 0);
  harness.compare("team elements embedding " + of_type + " backward", embedding,
                  {&EmbeddingCall::table});
  // A stride of 0 keeps the product away from cuBLAS.
  GemmCall gemm;
  gemm.a = repeated(t.uniform(type, {20, 9}), 1);
  gemm.b = t.uniform(type, {9, 30});
  gemm.out = t.filled(type, {20, 30}, 0);
  harness.compare("team elements gemm " + of_type, gemm, {&GemmCall::out});
}

}  // namespace

void team_cases(Harness& harness) {
  for (const std::int64_t n : kLengths) {
    // fp64 uses the other instantiation of every kernel; one length shows it.
    for (const DType type : {DType::kFp32, DType::kFp64}) {
      if (type == DType::kFp64 && n != 257) continue;
      reductions(harness, type, n);
      softmaxes(harness, type, n);
      norms(harness, type, n);
      losses(harness, type, n);
    }
  }
  for (const std::int64_t width : {8, 32, 40, 130}) attentions(harness, DType::kFp32, width);
  attentions(harness, DType::kFp64, 40);
  elements(harness, DType::kFp32);
  elements(harness, DType::kFp64);
}

}  // namespace memfathom::selftest
