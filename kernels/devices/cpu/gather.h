// gather: copies chunks of a strided span to and from dense fp32 or fp64 arrays, so that arithmetic
// is independent of an operand's type and strides.
#pragma once

#include <memory>

#include "kernels/devices/element/strided_span.h"

namespace memfathom::cpu {

// T is float or double.
template <typename T>
void gather(const element::StridedSpan& lane, std::int64_t first, std::int64_t count, T* to);
template <typename T>
void scatter(const element::StridedSpan& lane, std::int64_t first, std::int64_t count,
             const T* from);

// A dense array with the interface of a span, for the row functions.
template <typename T>
struct Dense {
  T* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
  template <typename U>
  U get(std::int64_t i) const {
    return U(data[i]);
  }
  template <typename U>
  void set(std::int64_t i, U value) const {
    data[i] = T(value);
  }
};

// Scratch memory for converted operands; its contents are uninitialized.
template <typename T>
std::unique_ptr<T[]> scratch(std::int64_t count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
}

template <typename T>
constexpr DType kDTypeOf = sizeof(T) == 8 ? DType::kFp64 : DType::kFp32;

// Whether a span already is a dense array of T.
template <typename T>
bool is_dense(const element::StridedSpan& lane) {
  return lane.dtype == kDTypeOf<T> && lane.rank == 1 &&
         (lane.stride[0] == 1 || lane.extent[0] == 1);
}

// The chunk as an array: in place if it is one, else gathered into `buffer`.
template <typename T>
const T* read(const element::StridedSpan& lane, std::int64_t first, std::int64_t count, T* buffer) {
  if (is_dense<T>(lane)) return static_cast<const T*>(lane.data) + first;
  gather(lane, first, count, buffer);
  return buffer;
}

// Where to write the chunk: in place, or `buffer`, which finish_write scatters.
template <typename T>
T* begin_write(const element::StridedSpan& lane, std::int64_t first, T* buffer) {
  return is_dense<T>(lane) ? static_cast<T*>(lane.data) + first : buffer;
}
template <typename T>
void finish_write(const element::StridedSpan& lane, std::int64_t first, std::int64_t count,
                  const T* buffer) {
  if (!is_dense<T>(lane)) scatter(lane, first, count, buffer);
}

}  // namespace memfathom::cpu
