// from_chars_real: std::from_chars for floats and doubles, also where the standard library has none
// of them (libc++ before 20). CMake chooses which source defines it.
#pragma once

#include <charconv>

namespace memfathom {

std::from_chars_result from_chars_real(const char* first, const char* last, float& value);
std::from_chars_result from_chars_real(const char* first, const char* last, double& value);

// The same by strtof and strtod, whose C locale every process of ours keeps.
std::from_chars_result from_chars_by_strtod(const char* first, const char* last, float& value);
std::from_chars_result from_chars_by_strtod(const char* first, const char* last, double& value);

}  // namespace memfathom
