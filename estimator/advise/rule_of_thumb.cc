#include "estimator/advise/rule_of_thumb.h"

#include "core/document_path.h"

namespace memfathom {

std::optional<RuleOfThumb> rule_of_thumb(const Node& document, const Job& job,
                                         const Estimate& estimate) {
  const ModelSettings& settings = job.training.settings;
  const auto count = [&](std::initializer_list<const char*> keys) -> std::int64_t {
    for (const char* key : keys) {
      if (const Node* value = value_at(document, key)) return value->as_int(1, 1 << 20);
    }
    return 0;
  };
  const std::int64_t width = count({"model.config.width", "model.config.hidden_size"});
  const std::int64_t layers = count({"model.config.layers", "model.config.num_hidden_layers"});
  if (width == 0 || layers == 0 || settings.image_height == 0) return std::nullopt;
  RuleOfThumb rule;
  // In Bytes, so that absurd extents are refused instead of wrapping around.
  rule.per_layer =
      Bytes{4} * job.training.batch_size * settings.image_height * settings.image_width * width;
  rule.activations = rule.per_layer * layers;
  if (estimate.verdict.capacity) {
    rule.limit = Bytes{estimate.verdict.capacity->count() / 10 * 7};
    rule.safe = rule.activations < *rule.limit;
  }
  return rule;
}

}  // namespace memfathom
