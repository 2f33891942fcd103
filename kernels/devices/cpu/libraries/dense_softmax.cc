#include "kernels/devices/cpu/dense_softmax.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/cpu/libraries/onednn.h"
#include "kernels/devices/element/split.h"

namespace memfathom::cpu {
namespace {

using dnnl::memory;

bool is_dense_fp32(const Operand& t) {
  const element::StridedSpan lane = element::whole(t);
  return t.dtype == DType::kFp32 && lane.rank == 1 && (lane.stride[0] == 1 || lane.extent[0] == 1);
}

bool has_form(const SoftmaxCall& call) {
  const int rank = call.in.shape.rank(), dim = call.dim < 0 ? call.dim + rank : call.dim;
  return dim == rank - 1 && call.in.shape.elements() > 0 && is_dense_fp32(call.in) &&
         is_dense_fp32(call.out) && (!call.backward || is_dense_fp32(call.y));
}

}  // namespace

// oneDNN caches primitives, so creating one per call costs only a lookup.
struct DenseSoftmax::Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  template <bool kLog>
  void run(const SoftmaxCall& call) {
    const std::int64_t n = call.in.shape[-1];
    const memory::desc rows({call.in.shape.elements() / n, n}, memory::data_type::f32,
                            memory::dims{n, 1});
    const memory in(rows, engine, call.in.data), out(rows, engine, call.out.data);
    using Primitives = SoftmaxOf<kLog>;
    const auto forward = Primitives::forward(rows, engine);
    if (call.backward) {
      const memory y(rows, engine, call.y.data);
      typename Primitives::Backward(Primitives::backward(rows, engine, forward))
          .execute(stream, {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, in}, {DNNL_ARG_DIFF_SRC, out}});
    } else {
      typename Primitives::Forward(forward).execute(stream,
                                                    {{DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}});
    }
    stream.wait();
  }
};

DenseSoftmax::DenseSoftmax() : engine_(std::make_unique<Engine>()) {}
DenseSoftmax::~DenseSoftmax() = default;

bool DenseSoftmax::run(const SoftmaxCall& call) {
  if (!has_form(call)) return false;
  try {
    if (call.op == Softmax::kSoftmax) {
      engine_->run<false>(call);
    } else {
      engine_->run<true>(call);
    }
  } catch (const dnnl::error& error) {
    throw Error(ErrorKind::kEnvironment, fmt::format("oneDNN failed at a softmax over {}: {}",
                                                     to_string(call.in.shape), error.what()));
  }
  return true;
}

}  // namespace memfathom::cpu
