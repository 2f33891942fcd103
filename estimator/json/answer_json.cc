#include "estimator/json/answer_json.h"

#include <nlohmann/json.hpp>

#include "estimator/job/describe.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/live_gpu_json.h"
#include "estimator/json/recommendation_json.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

Json rule_json(const RuleOfThumb& rule) {
  Json json{{"per_layer_bytes", rule.per_layer.count()},
            {"activations_bytes", rule.activations.count()}};
  if (rule.limit) {
    json["limit_bytes"] = rule.limit->count();
    json["safe"] = rule.safe;
  }
  return json;
}

}  // namespace

Json answer_json(const EstimateAnswer& answer, const JobInput& input) {
  Json json = estimate_json(answer.estimate);
  json["job"] = describe(input.document, input.job);
  if (answer.rule) json["rule_of_thumb"] = rule_json(*answer.rule);
  if (answer.gpu != nullptr) json["device"] = gpu_json(*answer.gpu);
  return json;
}

Json answer_json(const RecommendAnswer& answer, const JobInput& input) {
  return recommendation_json(answer.recommendation, answer.checklist, answer.gpu, input);
}

}  // namespace memfathom
