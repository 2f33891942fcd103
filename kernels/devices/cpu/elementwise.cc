#include <algorithm>
#include <cstring>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/element/visit_elementwise.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

using element::StridedSpan;

// Small enough for four chunks to stay in the L1 cache.
constexpr std::int64_t kStretch = 1024;

StridedSpan input_lane(const Operand& operand, const Shape& shape) {
  return operand ? element::whole(element::broadcast_to(operand, shape)) : StridedSpan{};
}

template <typename T, typename Function>
void apply(const ElementwiseCall& call, const Function& function) {
  const Shape& shape = call.out.shape;
  const StridedSpan out = element::whole(call.out);
  const StridedSpan inputs[3] = {input_lane(call.a, shape), input_lane(call.b, shape),
                                 input_lane(call.c, shape)};
  const element::Scalars<T> s{T(call.scalars[0]), T(call.scalars[1]), T(call.scalars[2]),
                              T(call.scalars[3])};
  T buffers[4][kStretch] = {};
  const std::int64_t size = shape.elements();
  for (std::int64_t first = 0; first < size; first += kStretch) {
    const std::int64_t n = std::min(kStretch, size - first);
    const T* in[3];
    for (int i = 0; i < 3; ++i)
      in[i] = inputs[i] ? read(inputs[i], first, n, buffers[i]) : buffers[i];
    T* to = begin_write(out, first, buffers[3]);
    for (std::int64_t i = 0; i < n; ++i) to[i] = function(in[0][i], in[1][i], in[2][i], s);
    finish_write(out, first, n, buffers[3]);
  }
}

bool is_contiguous(const StridedSpan& lane) {
  return lane.rank == 1 && (lane.stride[0] == 1 || lane.extent[0] == 1);
}

// A copy between equal types and contiguous layouts is a memcpy.
bool copied_bytes(const ElementwiseCall& call) {
  if (call.op != Elementwise::kCopy || call.a.dtype != call.out.dtype) return false;
  const StridedSpan from = input_lane(call.a, call.out.shape), to = element::whole(call.out);
  if (!is_contiguous(from) || !is_contiguous(to)) return false;
  std::memmove(to.data, from.data,
               static_cast<std::size_t>(size_of(call.out.shape, call.out.dtype).count()));
  return true;
}

bool is_float(const Operand& operand) {
  return !operand || is_floating(operand.dtype) || operand.dtype == DType::kBool;
}

}  // namespace

void run_loops(const ElementwiseCall& call) {
  if (copied_bytes(call)) return;
  // Integers and complex numbers are rare: the reference loops are fast enough.
  if (!is_float(call.out) || !is_float(call.a) || !is_float(call.b) || !is_float(call.c))
    return run_reference(call);
  in_compute_type(computes_in_double({&call.out, &call.a, &call.b, &call.c}), [&](auto zero) {
    element::visit_elementwise(call.op,
                               [&](auto function) { apply<decltype(zero)>(call, function); });
  });
}

}  // namespace memfathom::cpu
