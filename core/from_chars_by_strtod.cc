#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "core/from_chars_real.h"
#include "core/lowercase.h"

namespace memfathom {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char* after_digits(const char* at, const char* last) {
  while (at != last && is_digit(*at)) ++at;
  return at;
}

// The end of "1", "1.5", ".5" or "1.5e-3" at the start; `first` if there is no number.
const char* end_of_decimal(const char* first, const char* last) {
  const char* at = first != last && *first == '-' ? first + 1 : first;
  const char* const whole = at;
  at = after_digits(at, last);
  bool has_digits = at != whole;
  if (at != last && *at == '.') {
    const char* const end = after_digits(at + 1, last);
    has_digits = has_digits || end != at + 1;
    at = end;
  }
  if (!has_digits) return first;
  if (at == last || (*at != 'e' && *at != 'E')) return at;
  const char* exponent = at + 1;
  if (exponent != last && (*exponent == '-' || *exponent == '+')) ++exponent;
  const char* const end = after_digits(exponent, last);
  return end == exponent ? at : end;
}

// The end of "inf", "infinity" or "nan" at the start, in any case; `first` if there is none.
const char* end_of_word(const char* first, const char* last) {
  const char* const at = first != last && *first == '-' ? first + 1 : first;
  constexpr std::ptrdiff_t kLongest = 8;
  const std::string text = lowercase(std::string(at, at + std::min(kLongest, last - at)));
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (text.starts_with(word)) return at + word.size();
  }
  return first;
}

bool is_zero(std::string_view decimal) {
  return decimal.substr(0, decimal.find_first_of("eE")).find_first_of("123456789") ==
         std::string_view::npos;
}

template <typename Real>
std::from_chars_result read(const char* first, const char* last, Real& value,
                            Real (*convert)(const char*, char**)) {
  if (const char* const end = end_of_word(first, last); end != first) {
    value = convert(std::string(first, end).c_str(), nullptr);
    return {end, std::errc{}};
  }
  const char* const end = end_of_decimal(first, last);
  if (end == first) return {first, std::errc::invalid_argument};
  const std::string decimal(first, end);
  const Real converted = convert(decimal.c_str(), nullptr);
  if (std::isinf(converted) || (converted == 0 && !is_zero(decimal)))
    return {end, std::errc::result_out_of_range};
  value = converted;
  return {end, std::errc{}};
}

}  // namespace

std::from_chars_result from_chars_by_strtod(const char* first, const char* last, float& value) {
  return read(first, last, value, std::strtof);
}

std::from_chars_result from_chars_by_strtod(const char* first, const char* last, double& value) {
  return read(first, last, value, std::strtod);
}

}  // namespace memfathom
