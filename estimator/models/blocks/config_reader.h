// Config reader: values of a Hugging Face config.json under whichever of its names a family uses,
// within sane limits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/document.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

using ConfigNames = std::initializer_list<std::string_view>;

// No model comes near these; a file that exceeds them is wrong, or wants to exhaust us.
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

// The first of `names` that is present and not null; nullptr when none is.
const Node* find_any(const Node& config, ConfigNames names);

// A whole number of at least 1; absent: Error(kInput) that names the key.
std::int64_t required_count(const Node& config, ConfigNames names, std::int64_t most = kMaxWidth);
std::int64_t count_or(const Node& config, ConfigNames names, std::int64_t fallback,
                      std::int64_t most = kMaxWidth);
double number_or(const Node& config, ConfigNames names, double fallback);
// A probability: 0 up to, not including, 1.
double probability_or(const Node& config, ConfigNames names, double fallback);
bool flag_or(const Node& config, ConfigNames names, bool fallback);
Activation activation_or(const Node& config, ConfigNames names, std::string_view fallback);

// Refuses the key unless `divisor` divides `value`.
void require_divides(const Node& config, ConfigNames divisor_names, std::int64_t divisor,
                     std::int64_t value, std::string_view what);

}  // namespace memfathom
