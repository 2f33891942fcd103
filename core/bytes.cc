#include "core/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/from_chars_real.h"

namespace memfathom {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<Unit, 11> kUnits{{{"B", 1},
                                       {"KiB", 1LL << 10},
                                       {"MiB", 1LL << 20},
                                       {"GiB", 1LL << 30},
                                       {"TiB", 1LL << 40},
                                       {"kB", 1000},
                                       {"KB", 1000},
                                       {"MB", 1000000},
                                       {"GB", 1000000000},
                                       {"TB", 1000000000000},
                                       {"bytes", 1}}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(ErrorKind::kInput,
              fmt::format("\"{}\" is not a size: {}; write for example 24GiB, 24GB or 24576MiB",
                          text, why));
}

}  // namespace

void Bytes::throw_overflow() {
  throw Error(ErrorKind::kInput, "a size does not fit in 64 bits; the job's numbers are too large");
}

Bytes parse_bytes(std::string_view text) {
  const std::string_view whole = trimmed(text);
  const std::size_t digits_end = whole.find_first_not_of("0123456789.");
  if (digits_end == 0 || whole.empty()) refuse(text, "it does not start with a number");
  if (digits_end == std::string_view::npos) refuse(text, "the unit is missing");
  const std::string_view number = whole.substr(0, digits_end);
  const std::string_view unit = trimmed(whole.substr(digits_end));
  for (const Unit& candidate : kUnits) {
    if (candidate.name != unit) continue;
    if (number.find('.') == std::string_view::npos) {
      std::int64_t count = 0;
      const auto [end, failure] =
          std::from_chars(number.data(), number.data() + number.size(), count);
      if (failure != std::errc{} || end != number.data() + number.size())
        refuse(text, "the number is too large");
      return Bytes{count} * candidate.factor;
    }
    double count = 0;
    const auto [end, failure] =
        from_chars_real(number.data(), number.data() + number.size(), count);
    if (failure != std::errc{} || end != number.data() + number.size())
      refuse(text, "the number is malformed");
    const double bytes = count * static_cast<double>(candidate.factor);
    if (bytes >= 9.2e18) refuse(text, "the number is too large");
    return Bytes{std::llround(bytes)};
  }
  refuse(text, fmt::format("the unit \"{}\" is unknown", unit));
}

std::string to_string(Bytes bytes) {
  const double magnitude = std::abs(static_cast<double>(bytes.count()));
  if (magnitude >= static_cast<double>(1LL << 30)) return fmt::format("{:.2f} GiB", bytes.gib());
  if (magnitude >= static_cast<double>(1LL << 20)) return fmt::format("{:.2f} MiB", bytes.mib());
  if (magnitude >= 1024)
    return fmt::format("{:.2f} KiB", static_cast<double>(bytes.count()) / 1024);
  return fmt::format("{} B", bytes.count());
}

}  // namespace memfathom
