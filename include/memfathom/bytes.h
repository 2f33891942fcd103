// Bytes: an amount of memory, as a type of its own, so that it is never mistaken for a count and
// always prints with a unit.
//
//     #include <memfathom/bytes.h>
//     #include <iostream>
//
//     int main() {
//       using namespace memfathom::literals;
//       const memfathom::Bytes total = 24_GiB;
//       const memfathom::Bytes left = total - 20_GiB - 512_MiB;
//       std::cout << to_string(left) << " of " << to_string(total) << '\n';  // 3.50 GiB of 24.00
//       GiB
//     }
//
// Units are binary: 1 KiB is 1,024 bytes. Arithmetic is that of std::int64_t.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace memfathom {
inline namespace v0 {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t count_ = 0;
};

// "3.50 GiB", "512 bytes".
inline std::string to_string(Bytes bytes) {
  constexpr std::array<const char*, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  const bool negative = bytes.count() < 0;
  double value = static_cast<double>(bytes.count()) * (negative ? -1 : 1);
  if (value < 1024) return std::to_string(bytes.count()) + " bytes";
  std::size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%.2f %s", negative ? "-" : "", value, kUnits[unit]);
  return text.data();
}

namespace literals {
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
}  // namespace literals

}  // namespace v0
}  // namespace memfathom
