// StridedSpan: a sequence of elements in a tensor (a row, a channel, a whole tensor), by index.
// Rows: a tensor as many spans of equal length. Both are plain data, passed to device kernels by
// value.
//
// A stride of 0 repeats an element, so that a weight, a mean or a scalar is a span as long as the
// data.
#pragma once

#include "kernels/devices/element/load.h"

namespace memfathom::element {

struct StridedSpan {
  static constexpr int kMaxRank = 8;

  void* data = nullptr;
  DType dtype = DType::kFp32;
  int rank = 1;
  int64_t extent[kMaxRank] = {1};
  int64_t stride[kMaxRank] = {0};

  MEMFATHOM_HD explicit operator bool() const { return data != nullptr; }

  MEMFATHOM_HD int64_t size() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }

  // In elements from `data`.
  MEMFATHOM_HD int64_t offset(int64_t i) const {
    int64_t sum = 0;
    for (int d = rank - 1; d > 0; --d) {
      const int64_t rest = i / extent[d];
      sum += (i - rest * extent[d]) * stride[d];
      i = rest;
    }
    return sum + i * stride[0];
  }

  template <typename T>
  MEMFATHOM_HD T get(int64_t i) const {
    return load<T>(data, dtype, offset(i));
  }
  template <typename T>
  MEMFATHOM_HD void set(int64_t i, T value) const {
    store<T>(data, dtype, offset(i), value);
  }
};

struct Rows {
  StridedSpan outer;  // where each row starts
  StridedSpan inner;  // the first row

  MEMFATHOM_HD explicit operator bool() const { return inner.data != nullptr; }
  MEMFATHOM_HD int64_t rows() const { return outer.size(); }
  MEMFATHOM_HD int64_t length() const { return inner.size(); }

  MEMFATHOM_HD StridedSpan row(int64_t r) const {
    StridedSpan lane = inner;
    if (lane.data != nullptr) {
      lane.data = static_cast<char*>(lane.data) + outer.offset(r) * element_bytes(lane.dtype);
    }
    return lane;
  }
};

}  // namespace memfathom::element
