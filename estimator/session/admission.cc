#include "estimator/session/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "estimator/readers/gpu_count.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;

// The GPUs that are asked for are where the job will run, whatever its file says.
void set_target(Node& document, const std::string& gpu) {
  Node target = Node::map();
  if (const Node* given = document.find("target"); given != nullptr && given->is_map())
    target = *given;
  for (const char* key : {"gpu", "memory", "device", "architecture"}) target.erase(key);
  target.set("gpu", Node::string(gpu));
  document.set("target", std::move(target));
}

std::string percent_below(double probability) {
  return probability < 0.01 ? "below 1 %" : fmt::format("{:.0f} %", 100 * probability);
}

Estimate estimate_of(const JobInput& input, const Estimator& estimator) {
  return answer_estimate(input, {.suggests = false}, estimator).estimate;
}

bool is_hopeless(const Verdict& verdict, double probability) {
  return verdict.status != VerdictStatus::kUndecided && verdict.probability_fits &&
         1 - *verdict.probability_fits > probability;
}

// How many processes share a model is often said by the scheduler alone (srun, a PyTorchJob). What
// does not fit as it was read may fit when it is shared by all GPUs that are asked for.
bool fits_on_all(const JobInput& input, const AdmissionQuestion& question,
                 const Estimator& estimator) {
  if (question.gpus <= input.job.parallel.num_gpus) return false;
  try {
    JobInput shared = input;
    shared.document.assign("parallel.num_gpus", Node::integer(question.gpus));
    complete(shared);
    return !is_hopeless(estimate_of(shared, estimator).verdict, question.probability);
  } catch (const Error&) {
    return true;  // tensor or pipeline degrees that do not divide it: not understood
  }
}

struct OutOfTime {};

std::string cheapest_change(const JobInput& input, const AdmissionQuestion& question,
                            const Estimate& estimate, const Estimator& estimator) {
  constexpr std::int64_t kMaxLayersToSuggest = 6000;
  constexpr const char* kUntried = "`memfathom recommend` finds changes with which it fits";
  if (estimate.layers > kMaxLayersToSuggest) return kUntried;
  const Clock::time_point deadline = Clock::now() + question.advice;
  const EstimateFunction search = estimator.search_function();
  const auto in_time = [&](const Job& job, std::optional<Bytes> ceiling) {
    if (Clock::now() > deadline) throw OutOfTime();
    return search(job, ceiling);
  };
  try {
    for (const Suggestion& suggestion : suggest(input.document, in_time, input.job)) {
      if (!suggestion.fits) continue;
      return fmt::format("cheapest change with which it fits: {} ({}; {} then)", suggestion.change,
                         suggestion.costs, to_string(suggestion.device_peak));
    }
  } catch (const OutOfTime&) {
    return kUntried;
  }
  return "no single change is enough; `memfathom recommend` combines them";
}

}  // namespace

Admission judge_admission(JobInput& input, const AdmissionQuestion& question,
                          const Estimator& estimator) {
  if (!question.gpu.empty()) set_target(input.document, question.gpu);
  // A sharded job that leaves the number of its GPUs to the launcher has at most those it asks for.
  if (question.gpus > 0 && shards_among_unknown(input.document))
    input.document.assign("parallel.num_gpus", Node::integer(question.gpus));
  complete(input);
  const Estimate estimate = estimate_of(input, estimator);
  const Verdict& verdict = estimate.verdict;
  if (verdict.status == VerdictStatus::kUnknown || !verdict.available)
    return {Decision::kNote, "nothing names the type of its GPU; it is let through"};
  const std::string figures =
      fmt::format("{} of {} on {}", to_string(estimate.totals.device_peak),
                  to_string(*verdict.available), verdict.gpu.empty() ? "the GPU" : verdict.gpu);
  if (verdict.status == VerdictStatus::kUndecided || !verdict.probability_fits) {
    return {Decision::kNote,
            fmt::format("undecided, since parts of the job were not read: {}; it is let through",
                        figures)};
  }
  const std::string fits = percent_below(*verdict.probability_fits);
  if (is_hopeless(verdict, question.probability)) {
    if (fits_on_all(input, question, estimator)) {
      return {
          Decision::kNote,
          fmt::format("this job does not fit as it was read: {}, with {} of the {} GPUs that it "
                      "asks for; it is let through",
                      figures, input.job.parallel.num_gpus, question.gpus)};
    }
    return {Decision::kRefuse,
            fmt::format("this job does not fit: {}, probability of fitting {}; {}", figures, fits,
                        cheapest_change(input, question, estimate, estimator))};
  }
  if (verdict.status == VerdictStatus::kFits)
    return {Decision::kAllow, fmt::format("this job fits: {}", figures)};
  return {Decision::kNote,
          fmt::format("this job is tight: {}, probability of fitting {}", figures, fits)};
}

}  // namespace memfathom
