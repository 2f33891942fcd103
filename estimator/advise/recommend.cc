#include "estimator/advise/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/document_path.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/combine.h"
#include "estimator/advise/frontier.h"
#include "estimator/advise/largest_extent.h"
#include "estimator/advise/time_cost.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

// No search goes further than so many times what the job has now: an answer beyond it helps nobody.
constexpr std::int64_t kMaxTimes = 1024;

std::optional<Suggestion> suggestion_of(EstimateCache& answers, const SingleChange& change,
                                        const std::optional<Limit>& limit) {
  const Estimate* estimate = answers.of(change.patch);
  if (estimate == nullptr) return std::nullopt;
  const Bytes saves = answers.base().totals.device_peak - estimate->totals.device_peak;
  if (saves.count() <= 0) return std::nullopt;
  // A change that leaves nothing to train is no way to train.
  if (answers.base().trainable_count > 0 && estimate->trainable_count == 0) return std::nullopt;
  const TimeCost time = time_cost(answers, change.patch);
  return Suggestion{change.name,
                    change.change,
                    change.costs_at(time.factor),
                    saves,
                    estimate->totals.device_peak,
                    limit && limit->holds(*estimate),
                    patch_tree(change.patch),
                    std::string(to_string(change.kind)),
                    time.factor,
                    time.basis};
}

std::vector<Suggestion> all_suggestions(EstimateCache& answers, const Job& job,
                                        const std::optional<Limit>& limit) {
  std::vector<SingleChange> changes = possible_changes(answers.document(), job);
  std::vector<Patch> patches;
  for (const SingleChange& change : changes) patches.push_back(change.patch);
  answers.prepare(patches);
  if (limit && !limit->holds(answers.base())) {
    for (SingleChange& change : smaller_extents(answers, job, *limit))
      changes.push_back(std::move(change));
  }
  std::vector<std::pair<ChangeKind, Suggestion>> found;
  for (const SingleChange& change : changes) {
    if (std::optional<Suggestion> suggestion = suggestion_of(answers, change, limit))
      found.emplace_back(change.kind, std::move(*suggestion));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.saves > b.second.saves;
  });
  std::vector<Suggestion> list;
  for (auto& [kind, suggestion] : found) list.push_back(std::move(suggestion));
  return list;
}

LargestExtent largest_of(EstimateCache& answers, const Extent& extent, const Limit& limit) {
  LargestExtent result{extent.name, extent.now};
  result.largest = largest_that_fits(answers, {}, extent, limit, kMaxTimes);
  if (!result.largest) return result;
  const Patch patch = extent.patch(*result.largest);
  result.at_least = *result.largest >= extent.now * kMaxTimes;
  result.device_peak = answers.of(patch)->totals.device_peak;
  result.patch = patch_tree(patch);
  return result;
}

Configuration configuration(EstimateCache& answers, const Job& job, const Combination& combination,
                            std::string name, std::string aim, Bytes whole) {
  const Estimate& estimate = *answers.of(combination.patch);
  const Job changed = answers.variant(combination.patch);
  std::vector<std::string> words;
  for (const SingleChange& change : combination.changes) words.push_back(change.change);
  Configuration result{std::move(name),
                       std::move(aim),
                       std::move(words),
                       patch_tree(combination.patch),
                       estimate.totals.device_peak,
                       estimate.totals.host_peak,
                       estimate.totals.host_of_node()};
  result.used_fraction = static_cast<double>(estimate.totals.device_peak.count()) /
                         static_cast<double>(std::max<std::int64_t>(whole.count(), 1));
  result.effective_batch = changed.training.batch_size * changed.training.accumulation_steps *
                           data_parallel_size(job.parallel);
  result.trains_the_same = combination.trains_the_same();
  const TimeCost time = time_cost(answers, combination.patch);
  result.time_factor = time.factor;
  result.time_basis = time.basis;
  return result;
}

// The margin goes into the job, so that verdicts and probabilities are about what is left of it.
Node with_margin(Node document, const RecommendOptions& options) {
  if (value_at(document, "target.margin") == nullptr)
    document.assign("target.margin", Node::number(options.probability ? 0.0 : options.margin));
  return document;
}

std::optional<Limit> limit_of(EstimateCache& answers, const RecommendOptions& options) {
  const Verdict& verdict = answers.base().verdict;
  if (!verdict.available) return std::nullopt;
  const std::optional<Bytes>& stated = answers.job().target.host_memory;
  return Limit{*verdict.available, options.probability, stated ? stated : options.host_memory};
}

constexpr const char* kBalanced = "the cheapest changes that fit";

}  // namespace

Recommendation recommend(const Node& document, const EstimateFunction& answer,
                         const RecommendOptions& options, const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const Job& job = answers.job();
  Recommendation result;
  result.base = answers.base();
  const std::optional<Limit> limit = limit_of(answers, options);
  Bytes whole;
  if (limit) {
    whole = *result.base.verdict.capacity - result.base.verdict.used_by_others;
    result.available = limit->available;
    result.fits = limit->holds(result.base);
    result.host_memory = limit->host;
  }
  result.speed = gpu_speed(job).sentence();
  result.suggestions = all_suggestions(answers, job, limit);
  if (options.frontier) result.frontier = frontier_of(answers, job, limit);
  if (!limit) return result;

  const std::vector<Extent> extents = extents_of(document, job);
  result.largest.resize(extents.size());
  const Limit cautious{std::min(limit->available, whole - Bytes{whole.count() / 5}),
                       options.probability, limit->host};
  std::optional<Combination> conservative, balanced, maximal, same;
  // The longest search first; the second of the two alike last, since what it begins with is known
  // by then and nobody waits for it.
  std::vector<std::function<void()>> searches{[&] {
    balanced = cheapest_combination(answers, job, *limit, options.usable);
    if (!balanced) return;
    maximal = with_largest_batch(answers, job, *balanced, *limit);
    if (!balanced->trains_the_same())
      same = cheapest_combination(answers, job, *limit, [&](const SingleChange& change) {
        return trains_the_same(change.kind) && (!options.usable || options.usable(change));
      });
  }};
  for (std::size_t i = 0; i < extents.size(); ++i)
    searches.emplace_back([&, i] { result.largest[i] = largest_of(answers, extents[i], *limit); });
  searches.emplace_back(
      [&] { conservative = cheapest_combination(answers, job, cautious, options.usable); });
  parallel_for(searches.size(), [&](std::size_t i) { searches[i](); });

  const auto add = [&](const std::optional<Combination>& found, const char* name, const char* aim) {
    if (found)
      result.configurations.push_back(configuration(answers, job, *found, name, aim, whole));
  };
  add(conservative, "conservative", "leaves a fifth of the memory free");
  add(balanced, "balanced", kBalanced);
  add(maximal, "maximal", "the largest batch that fits with them");
  add(same, "same-training", "the cheapest changes that fit and train the same");
  return result;
}

std::optional<LargestBatch> largest_batch(const Node& document, const EstimateFunction& answer,
                                          const RecommendOptions& options, const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const std::optional<Limit> limit = limit_of(answers, options);
  if (!limit) return std::nullopt;
  const std::vector<Extent> extents = extents_of(answers.document(), answers.job());
  if (extents.empty())
    throw Error(ErrorKind::kInput,
                "a recorded trace has the batch it was recorded with; estimate it as it is, or "
                "describe the model in a job file (docs/jobs.md)");
  const LargestExtent found = largest_of(answers, extents.front(), *limit);
  return LargestBatch{found.largest, found.device_peak, limit->available};
}

std::optional<Configuration> cheapest_configuration(const Node& document,
                                                    const EstimateFunction& answer,
                                                    const RecommendOptions& options,
                                                    const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const Job& job = answers.job();
  const std::optional<Limit> limit = limit_of(answers, options);
  if (!limit) return std::nullopt;
  const std::optional<Combination> found =
      cheapest_combination(answers, job, *limit, options.usable);
  if (!found) return std::nullopt;
  return configuration(answers, job, *found, "balanced", kBalanced,
                       *answers.base().verdict.capacity - answers.base().verdict.used_by_others);
}

std::optional<CheckedFit> check_fit(const Node& document, const EstimateFunction& answer,
                                    const RecommendOptions& options) {
  EstimateCache answers(with_margin(document, options), answer);
  const std::optional<Limit> limit = limit_of(answers, options);
  if (!limit) return std::nullopt;
  return CheckedFit{limit->holds(answers.base()), answers.base().totals.device_peak,
                    limit->available};
}

std::vector<Suggestion> suggest(const Node& document, const EstimateFunction& answer,
                                const Job& original, std::optional<Estimate> base) {
  EstimateCache answers(document, answer, original);
  if (base) answers.know_base(std::move(*base));
  const Job& job = answers.job();
  std::optional<Limit> limit;
  if (answers.base().verdict.available)
    limit = Limit{*answers.base().verdict.available, std::nullopt, job.target.host_memory};
  return all_suggestions(answers, job, limit);
}

const Configuration* configuration_named(const Recommendation& recommendation,
                                         std::string_view name) {
  for (const Configuration& configuration : recommendation.configurations) {
    if (configuration.name == name) return &configuration;
  }
  return nullptr;
}

}  // namespace memfathom
