#include "estimator/advise/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/document_path.h"
#include "core/parallel_for.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/combine.h"
#include "estimator/advise/largest_extent.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

// No search goes further than so many times what the job has now: an answer beyond it helps nobody.
constexpr std::int64_t kMaxTimes = 1024;

void add_suggestion(EstimateCache& answers, const SingleChange& change,
                    const std::optional<Limit>& limit, std::vector<Suggestion>& list) {
  const Estimate* estimate = answers.of(change.patch);
  if (estimate == nullptr) return;
  const Bytes saves = answers.base().totals.device_peak - estimate->totals.device_peak;
  if (saves.count() <= 0) return;
  // A change that leaves nothing to train is no way to train.
  if (answers.base().trainable_count > 0 && estimate->trainable_count == 0) return;
  list.push_back({change.name, change.change, change.costs, saves, estimate->totals.device_peak,
                  limit && limit->holds(*estimate), patch_tree(change.patch)});
}

std::vector<Suggestion> all_suggestions(EstimateCache& answers, const Job& job,
                                        const std::optional<Limit>& limit) {
  std::vector<Suggestion> list;
  const std::vector<SingleChange> changes = possible_changes(answers.document(), job);
  std::vector<Patch> patches;
  for (const SingleChange& change : changes) patches.push_back(change.patch);
  answers.prepare(patches);
  for (const SingleChange& change : changes) add_suggestion(answers, change, limit, list);
  if (limit && !limit->holds(answers.base())) {
    for (const SingleChange& change : smaller_extents(answers, job, *limit))
      add_suggestion(answers, change, limit, list);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.saves > b.saves; });
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
  Configuration result{std::move(name),
                       std::move(aim),
                       combination.changes,
                       patch_tree(combination.patch),
                       estimate.totals.device_peak,
                       estimate.totals.host_peak,
                       estimate.totals.host_of_node()};
  result.used_fraction = static_cast<double>(estimate.totals.device_peak.count()) /
                         static_cast<double>(std::max<std::int64_t>(whole.count(), 1));
  result.effective_batch = changed.training.batch_size * changed.training.accumulation_steps *
                           data_parallel_size(job.parallel);
  return result;
}

// The margin goes into the job, so that verdicts and probabilities are about what is left of it.
Node with_margin(Node document, const RecommendOptions& options) {
  if (value_at(document, "target.margin") == nullptr)
    document.assign("target.margin", Node::number(options.probability ? 0.0 : options.margin));
  return document;
}

std::optional<Limit> limit_of(const Estimate& base, const RecommendOptions& options) {
  if (!base.verdict.available) return std::nullopt;
  return Limit{*base.verdict.available, options.probability};
}

constexpr const char* kBalanced = "the cheapest changes that fit";

}  // namespace

Recommendation recommend(const Node& document, const EstimateFunction& answer,
                         const RecommendOptions& options, const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const Job& job = answers.job();
  Recommendation result;
  result.base = answers.base();
  const std::optional<Limit> limit = limit_of(result.base, options);
  Bytes whole;
  if (limit) {
    whole = *result.base.verdict.capacity - result.base.verdict.used_by_others;
    result.available = limit->available;
    result.fits = limit->holds(result.base);
  }
  result.suggestions = all_suggestions(answers, job, limit);
  if (!limit) return result;

  const std::vector<Extent> extents = extents_of(document, job);
  result.largest.resize(extents.size());
  const Limit cautious{std::min(limit->available, whole - Bytes{whole.count() / 5}),
                       options.probability};
  std::optional<Combination> conservative, balanced, maximal;
  // The longest search first; the second of the two alike last, since what it begins with is known
  // by then and nobody waits for it.
  std::vector<std::function<void()>> searches{[&] {
    balanced = cheapest_combination(answers, job, *limit);
    if (balanced) maximal = with_largest_batch(answers, job, *balanced, *limit);
  }};
  for (std::size_t i = 0; i < extents.size(); ++i)
    searches.emplace_back([&, i] { result.largest[i] = largest_of(answers, extents[i], *limit); });
  searches.emplace_back([&] { conservative = cheapest_combination(answers, job, cautious); });
  parallel_for(searches.size(), [&](std::size_t i) { searches[i](); });

  const auto add = [&](const std::optional<Combination>& found, const char* name, const char* aim) {
    if (found)
      result.configurations.push_back(configuration(answers, job, *found, name, aim, whole));
  };
  add(conservative, "conservative", "a fifth of the memory stays free");
  add(balanced, "balanced", kBalanced);
  add(maximal, "maximal", "the largest batch that fits with them");
  return result;
}

std::optional<LargestBatch> largest_batch(const Node& document, const EstimateFunction& answer,
                                          const RecommendOptions& options, const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const std::optional<Limit> limit = limit_of(answers.base(), options);
  if (!limit) return std::nullopt;
  const LargestExtent found =
      largest_of(answers, extents_of(answers.document(), answers.job()).front(), *limit);
  return LargestBatch{found.largest, found.device_peak, limit->available};
}

std::optional<Configuration> cheapest_configuration(const Node& document,
                                                    const EstimateFunction& answer,
                                                    const RecommendOptions& options,
                                                    const Job& original) {
  EstimateCache answers(with_margin(document, options), answer, original);
  const Job& job = answers.job();
  const std::optional<Limit> limit = limit_of(answers.base(), options);
  if (!limit) return std::nullopt;
  const std::optional<Combination> found = cheapest_combination(answers, job, *limit);
  if (!found) return std::nullopt;
  return configuration(answers, job, *found, "balanced", kBalanced,
                       *answers.base().verdict.capacity - answers.base().verdict.used_by_others);
}

std::vector<Suggestion> suggest(const Node& document, const EstimateFunction& answer,
                                const Job& original) {
  EstimateCache answers(document, answer, original);
  const Job& job = answers.job();
  std::optional<Limit> limit;
  if (answers.base().verdict.available)
    limit = Limit{*answers.base().verdict.available, std::nullopt};
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
