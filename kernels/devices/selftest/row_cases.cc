#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

void reductions(Harness& harness) {
  const Shape shape{3, 5, 4};
  for (const Reduction op : {Reduction::kSum, Reduction::kMean, Reduction::kMax}) {
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16, DType::kFp16}) {
      for (const Shape& kept :
           {Shape{1, 1, 1}, Shape{3, 1, 4}, Shape{1, 5, 1}, Shape{3, 5, 1}, Shape{3, 5, 4}}) {
        Tensors t;
        harness.compare(fmt::format("reduce {} {} to {}", static_cast<int>(op), to_string(type),
                                    to_string(kept)),
                        ReduceCall{op, t.filled(type, kept, 0), t.uniform(type, shape)},
                        {&ReduceCall::out});
      }
    }
    Tensors t;
    harness.compare(
        fmt::format("reduce {} of a strided tensor", static_cast<int>(op)),
        ReduceCall{op, t.filled(DType::kFp32, {3, 1, 4}, 0), t.strided(DType::kFp32, shape)},
        {&ReduceCall::out});
  }
}

void softmaxes(Harness& harness) {
  const Shape shape{3, 6, 4};
  for (const Softmax op : {Softmax::kSoftmax, Softmax::kLogSoftmax}) {
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
      for (const int dim : {-1, 1, 0}) {
        Tensors t;
        SoftmaxCall call{op, false, dim, t.filled(type, shape, 0), t.uniform(type, shape, -5, 5),
                         {}};
        const std::string name =
            fmt::format("softmax {} {} dim {}", static_cast<int>(op), to_string(type), dim);
        harness.compare(name, call, {&SoftmaxCall::out});
        run_reference(call);
        harness.compare(
            name + " backward",
            SoftmaxCall{op, true, dim, t.filled(type, shape, 0), t.uniform(type, shape), call.out},
            {&SoftmaxCall::out});
      }
    }
  }
  Tensors t;
  harness.compare("softmax from fp16 into fp32",
                  SoftmaxCall{Softmax::kSoftmax,
                              false,
                              -1,
                              t.filled(DType::kFp32, shape, 0),
                              t.uniform(DType::kFp16, shape, -5, 5),
                              {}},
                  {&SoftmaxCall::out});
}

void losses(Harness& harness) {
  for (const Shape& shape : {Shape{7, 5}, Shape{3, 5, 2, 2}}) {
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
      Tensors t;
      Shape positions{shape[0]};
      for (int d = 2; d < shape.rank(); ++d) positions.push_back(shape[d]);
      NllCall call;
      call.ignore_index = 2;
      call.log_probabilities = t.uniform(type, shape, -3, 0);
      call.target = t.uniform(DType::kInt64, positions, 0, 5);
      call.loss = t.filled(type, {}, 0);
      call.total_weight = t.filled(type, {}, 0);
      const std::string name = fmt::format("nll {} {}", to_string(type), to_string(shape));
      harness.compare(name, call, {&NllCall::loss, &NllCall::total_weight});
      call.backward = true;
      call.loss = {};
      call.total_weight = t.filled(type, {}, 5);
      call.grad_loss = t.filled(type, {}, 0.5);
      call.grad_input = t.filled(type, shape, 0);
      harness.compare(name + " backward", call, {&NllCall::grad_input});
    }
  }
}

void embeddings(Harness& harness) {
  for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
    Tensors t;
    EmbeddingCall call;
    call.padding_index = 1;
    call.table = t.uniform(type, {6, 5});
    call.index = t.uniform(DType::kInt64, {3, 2}, 0, 6);
    call.out = t.filled(type, {3, 2, 5}, 0);
    harness.compare(fmt::format("embedding {}", to_string(type)), call, {&EmbeddingCall::out});
    call.backward = true;
    call.table = t.filled(type, {6, 5}, 0);
    call.out = t.uniform(type, {3, 2, 5});
    harness.compare(fmt::format("embedding {} backward", to_string(type)), call,
                    {&EmbeddingCall::table});
  }
}

}  // namespace

void row_cases(Harness& harness) {
  reductions(harness);
  softmaxes(harness);
  losses(harness);
  embeddings(harness);
}

}  // namespace memfathom::selftest
