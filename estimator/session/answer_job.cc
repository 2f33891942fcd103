#include "estimator/session/answer_job.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace memfathom {
namespace {

// Beyond this (a linear layer for each of thousands of experts) each change takes seconds.
constexpr std::int64_t kMaxLayersToSuggest = 6000;

}  // namespace

EstimateAnswer answer_estimate(const JobInput& input, const EstimateRequest& request,
                               const Estimator& estimator) {
  EstimateAnswer answer;
  Estimate& estimate = answer.estimate;
  estimate = estimator.estimate_as_run(input.job, request.explains);
  // Suggestions compare with a job that has all the cache it wants.
  std::optional<Estimate> base;
  if (request.suggests && estimate.verdict.status == VerdictStatus::kDoesNotFit &&
      !estimate.totals.comfortable_peak)
    base = estimate;
  input.annotate(estimate);
  const bool wants_changes =
      request.suggests && estimate.verdict.status == VerdictStatus::kDoesNotFit;
  if (wants_changes && estimate.layers > kMaxLayersToSuggest) {
    estimate.warnings.push_back(fmt::format(
        "changes were not tried: a job of {} layers takes a while each; memfathom recommend does",
        estimate.layers));
  } else if (wants_changes) {
    estimate.suggestions =
        suggest(input.document, estimator.search_function(), input.job, std::move(base));
  }
  if (request.rule_of_thumb) answer.rule = rule_of_thumb(input.document, input.job, estimate);
  answer.gpu = estimator.live_target(input.job);
  return answer;
}

RecommendAnswer answer_recommend(const JobInput& input, const RecommendOptions& options,
                                 const Estimator& estimator) {
  RecommendAnswer answer;
  answer.gpu = estimator.live_target(input.job);
  const EstimateFunction search = estimator.search_function();
  const auto counted = [&](const Job& job, std::optional<Bytes> ceiling) {
    Estimate estimate = search(job, ceiling);
    if (options.on_estimate) options.on_estimate();
    return estimate;
  };
  answer.recommendation = recommend(input.document, counted, options, input.job);
  input.annotate(answer.recommendation.base);
  answer.checklist = preflight(
      input.document, input.job, answer.recommendation,
      answer.gpu != nullptr ? std::optional(process_descriptions(*answer.gpu)) : std::nullopt);
  return answer;
}

}  // namespace memfathom
