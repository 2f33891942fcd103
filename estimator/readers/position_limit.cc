#include "estimator/readers/position_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "estimator/readers/model_config.h"
#include "estimator/readers/reading.h"

namespace memfathom {
namespace {

std::int64_t count_at(const Node& tree, std::string_view key) {
  const Node* value = value_at(tree, key);
  return value != nullptr && value->is_int() ? value->as_int() : 0;
}

struct Family {
  std::string_view type;
  std::int64_t reserved;  // places of the table that no token can have
};

// Their table of positions ends, and so does the library's patience.
constexpr auto kTables = std::to_array<Family>({{"gpt2", 0},
                                                {"opt", 0},
                                                {"bert", 0},
                                                {"distilbert", 0},
                                                {"roberta", 2},
                                                {"xlm-roberta", 2},
                                                {"camembert", 2}});

}  // namespace

std::string beyond_positions(const Node& document) {
  std::int64_t length = count_at(document, "training.sequence_length");
  if (const Node* mode = value_at(document, "training.mode");
      mode != nullptr && mode->is_string() && mode->as_string() == "generate")
    length += count_at(document, "training.new_tokens");
  if (length <= 0) return "";
  const Node config = model_config(document);
  if (!config.is_map()) return "";
  const Node* type = value_at(config, "model_type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  const auto* family = std::find_if(kTables.begin(), kTables.end(),
                                    [&](const Family& known) { return known.type == name; });
  const bool table = family != kTables.end();
  std::int64_t places =
      count_at(config, name == "gpt2" ? "n_positions" : "max_position_embeddings");
  if (table) places -= family->reserved;
  if (places <= 0 || length <= places) return "";
  return table ? fmt::format(
                     "{} tokens are more than the model's {} positions; its library would "
                     "refuse them",
                     length, places)
               : fmt::format("{} tokens are more than the {} positions the model was made for",
                             length, places);
}

}  // namespace memfathom
