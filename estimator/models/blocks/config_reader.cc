#include "estimator/models/blocks/config_reader.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace memfathom {

const Node* find_any(const Node& config, ConfigNames names) {
  for (const std::string_view name : names) {
    const Node* found = config.find(name);
    if (found != nullptr && !found->is_null()) return found;
  }
  return nullptr;
}

std::int64_t required_count(const Node& config, ConfigNames names, std::int64_t most) {
  const Node* found = find_any(config, names);
  return (found != nullptr ? *found : config.at(*names.begin())).as_int(1, most);
}

std::int64_t count_or(const Node& config, ConfigNames names, std::int64_t fallback,
                      std::int64_t most) {
  const Node* found = find_any(config, names);
  return found != nullptr ? found->as_int(1, most) : fallback;
}

double number_or(const Node& config, ConfigNames names, double fallback) {
  const Node* found = find_any(config, names);
  return found != nullptr ? found->as_number() : fallback;
}

double probability_or(const Node& config, ConfigNames names, double fallback) {
  const Node* found = find_any(config, names);
  if (found == nullptr) return fallback;
  const double value = found->as_number(0, 1);
  if (value == 1) found->refuse("a dropout probability must be below 1");
  return value;
}

bool flag_or(const Node& config, ConfigNames names, bool fallback) {
  const Node* found = find_any(config, names);
  return found != nullptr ? found->as_bool() : fallback;
}

Activation activation_or(const Node& config, ConfigNames names, std::string_view fallback) {
  const Node* found = find_any(config, names);
  const std::optional<Activation> parsed =
      parse_activation(found != nullptr ? found->as_string() : fallback);
  if (!parsed) {
    (found != nullptr ? *found : config)
        .refuse("it must be an activation such as gelu, gelu_new, relu, silu or quick_gelu");
  }
  return *parsed;
}

void require_divides(const Node& config, ConfigNames divisor_names, std::int64_t divisor,
                     std::int64_t value, std::string_view what) {
  if (value % divisor == 0) return;
  const Node* found = find_any(config, divisor_names);
  (found != nullptr ? *found : config).refuse(fmt::format("it must divide {}, {}", what, value));
}

}  // namespace memfathom
