// Bytes: an exact, signed number of bytes; arithmetic that overflows throws instead of wrapping.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace memfathom {

class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }
  constexpr double mib() const { return static_cast<double>(count_) / (1 << 20); }
  constexpr double gib() const { return static_cast<double>(count_) / (1 << 30); }

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads a defaulted <=>
  constexpr auto operator<=>(const Bytes&) const = default;

  constexpr Bytes& operator+=(Bytes other) {
    if (__builtin_add_overflow(count_, other.count_, &count_)) throw_overflow();
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    if (__builtin_sub_overflow(count_, other.count_, &count_)) throw_overflow();
    return *this;
  }
  constexpr Bytes& operator*=(std::int64_t factor) {
    if (__builtin_mul_overflow(count_, factor, &count_)) throw_overflow();
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t factor) { return a *= factor; }
  friend constexpr Bytes operator*(std::int64_t factor, Bytes a) { return a *= factor; }
  friend constexpr Bytes operator-(Bytes a) { return Bytes{} - a; }

  // The smallest multiple of `step` (positive) that is at least this.
  constexpr Bytes rounded_up(Bytes step) const {
    const std::int64_t rest = count_ % step.count_;
    return rest == 0 ? *this : *this + Bytes{step.count_ - rest};
  }

 private:
  [[noreturn]] static void throw_overflow();  // Error of kind kInput
  std::int64_t count_ = 0;
};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{1 << 10} * static_cast<std::int64_t>(n);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{1 << 20} * static_cast<std::int64_t>(n);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{1 << 30} * static_cast<std::int64_t>(n);
}
}  // namespace literals

// Reads "24GiB", "24GB", "24576MiB", "1.5 GiB", "512B". A number without a unit is an error. Throws
// Error(kInput).
Bytes parse_bytes(std::string_view text);

// "13.74 GiB", "512.00 MiB", "1023 B": for display. Machine-readable output uses count().
std::string to_string(Bytes bytes);

}  // namespace memfathom
