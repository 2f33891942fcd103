// Team: the threads that share one row. Row work supports teams of any size: members stride through
// the row and combine their results. On the host a team has one member; on a GPU it is a warp or a
// block (teams.cuh).
#pragma once

#include "kernels/devices/element/strided_span.h"

namespace memfathom::cuda {

struct SingleTeam {
  static constexpr int kSize = 1;
  MEMFATHOM_HD int lane() const { return 0; }
  // Every member gets the result.
  template <typename T>
  MEMFATHOM_HD T sum(T value) const {
    return value;
  }
  template <typename T>
  MEMFATHOM_HD T max(T value) const {
    return value;
  }
};

// One row of Rows, without copying its extents.
struct RowRef {
  const element::StridedSpan& lane;
  void* data;

  MEMFATHOM_HD explicit operator bool() const { return data != nullptr; }
  MEMFATHOM_HD int64_t size() const { return lane.size(); }
  template <typename T>
  MEMFATHOM_HD T get(int64_t i) const {
    return element::load<T>(data, lane.dtype, lane.offset(i));
  }
  template <typename T>
  MEMFATHOM_HD void set(int64_t i, T value) const {
    element::store<T>(data, lane.dtype, lane.offset(i), value);
  }
};

MEMFATHOM_HD inline RowRef row_of(const element::Rows& rows, int64_t r) {
  char* data = static_cast<char*>(rows.inner.data);
  if (data != nullptr) data += rows.outer.offset(r) * element::element_bytes(rows.inner.dtype);
  return {rows.inner, data};
}

// The arithmetic type: fp64 for fp64 and for integers, which fp32 cannot represent, else fp32.
inline bool in_double(DType type) {
  return type == DType::kFp64 || type == DType::kInt64 || type == DType::kInt32;
}

}  // namespace memfathom::cuda
