#include "core/from_chars_real.h"

namespace memfathom {

std::from_chars_result from_chars_real(const char* first, const char* last, float& value) {
  return std::from_chars(first, last, value);
}

std::from_chars_result from_chars_real(const char* first, const char* last, double& value) {
  return std::from_chars(first, last, value);
}

}  // namespace memfathom
