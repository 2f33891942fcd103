// Shape: the extents of a tensor; at most eight, stored in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/bytes.h"
#include "core/dtype.h"

namespace memfathom {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t extent : extents) push_back(extent);
  }
  explicit Shape(std::span<const std::int64_t> extents) {
    for (const std::int64_t extent : extents) push_back(extent);
  }

  constexpr int rank() const { return rank_; }
  // Negative indices count from the end, as in Python.
  constexpr std::int64_t operator[](int i) const { return extents_[position(i)]; }
  constexpr std::int64_t& operator[](int i) { return extents_[position(i)]; }
  constexpr const std::int64_t* begin() const { return extents_.data(); }
  constexpr const std::int64_t* end() const { return extents_.data() + rank_; }
  constexpr std::int64_t* begin() { return extents_.data(); }
  constexpr std::int64_t* end() { return extents_.data() + rank_; }

  constexpr void push_back(std::int64_t extent) {
    if (rank_ == kMaxRank) throw_too_deep();
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }

  constexpr bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
  }

  // The number of elements; throws Error(kInput) if it overflows or an extent is negative.
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : *this) {
      if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) throw_too_large(*this);
    }
    return n;
  }

 private:
  constexpr std::size_t position(int i) const {
    return static_cast<std::size_t>(i < 0 ? i + rank_ : i);
  }
  [[noreturn]] static void throw_too_deep();
  [[noreturn]] static void throw_too_large(const Shape& shape);

  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// Bytes of a contiguous tensor, 4-bit types rounded up to whole bytes. Throws on overflow.
Bytes size_of(const Shape& shape, DType type);

std::string to_string(const Shape& shape);  // "[4, 2048, 4096]"

}  // namespace memfathom
