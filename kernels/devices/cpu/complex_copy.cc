#include "kernels/devices/cpu/complex_copy.h"

#include <cstring>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/element/split.h"

namespace memfathom::cpu {

using element::StridedSpan;

bool is_plain(const Operand& t) {
  const StridedSpan lane = element::whole(t);
  const DType plain = is_complex(t.dtype) ? DType::kComplex64 : DType::kFp32;
  return t.dtype == plain && lane.rank == 1 && (lane.stride[0] == 1 || lane.extent[0] == 1);
}

std::int64_t floats_of(const Operand& t) {
  return t.shape.elements() * (is_complex(t.dtype) ? 2 : 1);
}

void copy_in(const Operand& t, float* to) {
  const StridedSpan lane = element::whole(t);
  const std::int64_t n = t.shape.elements();
  if (!is_complex(t.dtype)) return gather(lane, 0, n, to);
  if (is_plain(t)) {
    std::memcpy(to, t.data, static_cast<std::size_t>(n) * 2 * sizeof(float));
    return;
  }
  auto* values = reinterpret_cast<element::Complex*>(to);
  for (std::int64_t i = 0; i < n; ++i) values[i] = lane.get<element::Complex>(i);
}

void copy_out(const Operand& t, float* from, double scale, bool in_place) {
  const std::int64_t floats = floats_of(t);
  const float factor = static_cast<float>(scale);
  if (factor != 1.0f) {
    for (std::int64_t i = 0; i < floats; ++i) from[i] *= factor;
  }
  if (in_place) return;
  const StridedSpan lane = element::whole(t);
  const std::int64_t n = t.shape.elements();
  if (!is_complex(t.dtype)) return scatter(lane, 0, n, static_cast<const float*>(from));
  const auto* values = reinterpret_cast<const element::Complex*>(from);
  for (std::int64_t i = 0; i < n; ++i) lane.set<element::Complex>(i, values[i]);
}

}  // namespace memfathom::cpu
