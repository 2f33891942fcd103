#include "estimator/readers/position_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "estimator/models/registry.h"
#include "estimator/readers/model_config.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {
namespace {

std::int64_t count_at(const Node& tree, std::string_view key) {
  const Node* value = value_at(tree, key);
  return value != nullptr && value->is_int() ? value->as_int() : 0;
}

// The positions that the model has for tokens, and whether its library refuses more; 0: unknown.
struct PositionLimits {
  std::int64_t count = 0;
  bool table = false;
};

PositionLimits position_limits_of(const Node& config) {
  const ModelFamily* family = find_family(config);
  const PositionLimit limit = family != nullptr ? family->traits.positions : PositionLimit{};
  return {count_at(config, limit.key) - limit.reserved, limit.is_table};
}

// Those of a decoder beside an encoder of something else; Whisper's are 448 where config.json does
// not say (bart_stack.cc).
std::int64_t decoder_positions(const Node& config) {
  const std::int64_t said = count_at(config, "max_target_positions");
  return said == 0 && text_at(config, "model_type") == "whisper" ? 448 : said;
}

}  // namespace

std::string position_limit_warning(const Node& document, const ModelSpec& model) {
  std::int64_t length = count_at(document, "training.sequence_length");
  if (const Node* mode = value_at(document, "training.mode");
      mode != nullptr && mode->is_string() && mode->as_string() == "generate")
    length += count_at(document, "training.new_tokens");
  if (length <= 0 || model.config() == nullptr) return "";
  const PositionLimits places = position_limits_of(model.config()->config);
  if (places.count <= 0 || length <= places.count) return "";
  return places.table
             ? fmt::format(
                   "{} tokens are more than the model's {} positions; its library would refuse "
                   "them",
                   length, places.count)
             : fmt::format("{} tokens are more than the {} positions the model was made for",
                           length, places.count);
}

std::int64_t table_of_positions(const ModelSpec& model) {
  if (model.config() == nullptr) return 0;
  const PositionLimits places = position_limits_of(model.config()->config);
  return places.table ? std::max<std::int64_t>(places.count, 0) : 0;
}

bool assume_length(Node& document, std::vector<std::string>& assumptions) {
  constexpr std::int64_t kDefaultLength = 2048;
  if (value_at(document, "training.sequence_length") != nullptr) return false;
  const Node config = model_config(document);
  const bool reads_text = value_at(document, "model.parameters") != nullptr ||
                          (config.is_map() && (value_at(config, "vocab_size") != nullptr ||
                                               value_at(config, "text_config") != nullptr));
  if (!reads_text) return false;
  std::int64_t places = config.is_map() ? position_limits_of(config).count : 0;
  if (places <= 0 && config.is_map()) places = decoder_positions(config);
  const std::int64_t length = places > 0 ? std::min(places, kDefaultLength) : kDefaultLength;
  document.assign("training.sequence_length", Node::integer(length));
  assumptions.push_back(
      fmt::format("no file sets the sequence length; using {} tokens. Activations and logits scale "
                  "with it; pass --sequence-length to set it",
                  length));
  return true;
}

}  // namespace memfathom
