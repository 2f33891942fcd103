// Version: a library's release, compared number by number: Version{4, 9} < Version{4, 38}.
#pragma once

#include <charconv>
#include <compare>
#include <limits>
#include <optional>
#include <string_view>

namespace memfathom {

struct Version {
  int major = 0, minor = 0, patch = 0;

  // "2.6.1+cu124" is {2, 6, 1}; missing numbers are 0. Returns nullopt for text that does not begin
  // with a number, and for 0.0, which no library has released.
  static std::optional<Version> parse(std::string_view text) { return parse(text, 0); }

  // The same, but a version without its third number means the last release of its series: "0.43"
  // is later than "0.43.2".
  static std::optional<Version> parse_latest(std::string_view text) {
    return parse(text, std::numeric_limits<int>::max());
  }

  // The release series: 2.6.1 belongs to 2.6.
  constexpr Version series() const { return {major, minor, 0}; }

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads a defaulted <=>
  friend constexpr auto operator<=>(const Version&, const Version&) = default;

 private:
  static std::optional<Version> parse(std::string_view text, int missing_patch) {
    Version version{0, 0, missing_patch};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int* number : {&version.major, &version.minor, &version.patch}) {
      int value = 0;
      const auto [after, failure] = std::from_chars(at, end, value);
      if (failure != std::errc{} || value < 0) {
        if (number == &version.major) return std::nullopt;
        break;
      }
      *number = value;
      if (after == end || *after != '.') break;
      at = after + 1;
    }
    if (version.series() == Version{}) return std::nullopt;
    return version;
  }
};

}  // namespace memfathom
