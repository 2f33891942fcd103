#include "core/error.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/element/visit_elementwise.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using element::StridedSpan;

struct Lanes {
  StridedSpan out, a, b, c;
  std::int64_t size = 0;
};

// An absent operand reads as zero.
StridedSpan input_lane(const Operand& operand, const Shape& shape) {
  static constexpr double kZero = 0;
  if (!operand) return {const_cast<double*>(&kZero), DType::kFp64, 1, {1}, {0}};
  return element::whole(element::broadcast_to(operand, shape));
}

Lanes lanes_of(const ElementwiseCall& call) {
  const Shape& shape = call.out.shape;
  return {element::whole(call.out), input_lane(call.a, shape), input_lane(call.b, shape),
          input_lane(call.c, shape), shape.elements()};
}

template <typename T, typename Function>
void apply(const Lanes& lanes, const std::array<double, 4>& scalars, const Function& function) {
  const element::Scalars<T> s{T(scalars[0]), T(scalars[1]), T(scalars[2]), T(scalars[3])};
  for (std::int64_t i = 0; i < lanes.size; ++i) {
    lanes.out.set<T>(i, function(lanes.a.get<T>(i), lanes.b.get<T>(i), lanes.c.get<T>(i), s));
  }
}

}  // namespace

void run_reference(const ElementwiseCall& call) {
  const Lanes lanes = lanes_of(call);
  const auto operands = {&call.out, &call.a, &call.b, &call.c};
  if (any_of_type(operands, DType::kComplex64)) {
    const bool known = element::visit_complex_elementwise(
        call.op, [&](auto function) { apply<element::Complex>(lanes, call.scalars, function); });
    if (!known)
      throw Error(ErrorKind::kInternal,
                  "a complex operand in an element-wise operation that has no complex form");
    return;
  }
  if (call.op == Elementwise::kCopy && call.a.dtype == DType::kInt64 &&
      call.out.dtype == DType::kInt64) {
    for (std::int64_t i = 0; i < lanes.size; ++i)
      lanes.out.set<std::int64_t>(i, lanes.a.get<std::int64_t>(i));
    return;
  }
  in_compute_type(computes_in_double(operands), [&](auto zero) {
    element::visit_elementwise(
        call.op, [&](auto function) { apply<decltype(zero)>(lanes, call.scalars, function); });
  });
}

}  // namespace memfathom
