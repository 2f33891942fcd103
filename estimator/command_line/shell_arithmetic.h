// shell_arithmetic: the value of $((A * 2 + 1)), for whole numbers and + - * / % and parentheses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace memfathom {

// `value_of` resolves names. Nothing if a name is unknown, on overflow, division by zero or another
// operator.
std::optional<std::int64_t> evaluate_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& value_of);

}  // namespace memfathom
