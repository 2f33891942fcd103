#include "estimator/session/compare_strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/grid.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

// What people compare when they name nothing: one change at a time on one GPU, the ZeRO stages on
// several.
std::vector<std::string> default_strategies(const Job& job) {
  const bool trains = job.training.mode == Mode::kTrain;
  if (!trains) return {"baseline", "bf16", "flash", "int8", "nf4", "offload-parameters"};
  if (job.parallel.num_gpus < 2) {
    return {"baseline", "checkpointing",           "flash", "bf16", "adamw-8bit", "lora", "qlora",
            "offload",  "checkpointing+adamw-8bit"};
  }
  std::vector<std::string> names{"baseline", "checkpointing", "zero1+checkpointing",
                                 "zero2+checkpointing", "zero3+checkpointing"};
  if (job.training.settings.sequence_length > 1) {
    names.push_back(
        fmt::format("zero2+checkpointing+sequence={}", job.training.settings.sequence_length / 2));
  }
  names.push_back(fmt::format("zero2+checkpointing+gpus={}", job.parallel.num_gpus * 2));
  return names;
}

std::vector<NamedPatch> strategies_of(const CompareRequest& request, const Job& job) {
  std::vector<NamedPatch> strategies{{"baseline", {}, {}}};
  std::vector<std::string> names;
  if (request.strategies) {
    names = *request.strategies;
  } else if (request.patches.empty()) {
    names = default_strategies(job);
  }
  for (const std::string& name : names) {
    if (name != "baseline") strategies.push_back({name, strategy_patch(name, job), {}});
  }
  for (const NamedPatch& patch : request.patches) strategies.push_back(patch);
  return strategies;
}

std::vector<NamedPatch> strategies_of(const Grid& grid) {
  std::vector<NamedPatch> strategies;
  for (const GridRow& row : grid.rows) {
    std::string name;
    for (std::size_t i = 0; i < row.names.size(); ++i) {
      if (!name.empty()) name += ", ";
      name += grid.columns[i] == "strategy" ? row.names[i]
                                            : fmt::format("{}={}", grid.columns[i], row.names[i]);
    }
    strategies.push_back({name, row.patch, row.names});
  }
  return strategies;
}

// "rtx-4090" is a GPU, "24GiB" and "24" are sizes.
NamedPatch target_of(const std::string& name, const Job& job) {
  const bool size = name.find_first_not_of("0123456789.") == std::string::npos;
  const bool with_unit = !size && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  const std::string strategy = size        ? fmt::format("memory={}GiB", name)
                               : with_unit ? "memory=" + name
                                           : "gpu=" + name;
  return {name, strategy_patch(strategy, job), {}};
}

// One strategy: on the job's own GPU and on every other target. An Error is kept until its turn.
struct StrategyResult {
  Estimate estimate;
  std::vector<ComparedTarget> targets;
  std::optional<Error> error;
};

StrategyResult answer_of(const JobInput& input, const NamedPatch& strategy,
                         const std::vector<NamedPatch>& targets, const Estimator& estimator) {
  StrategyResult answer;
  try {
    const Node changed = patched(input.document, strategy.patch);
    const Job job = read_variant(changed, input.job);
    answer.estimate = estimator.estimate(job);
    for (const NamedPatch& target : targets) {
      const Estimate estimate =
          estimator.estimate(read_variant(patched(changed, target.patch), job));
      answer.targets.push_back({target.name, estimate.totals.device_peak, estimate.verdict});
    }
  } catch (const Error& error) {
    answer.error = error;
  }
  return answer;
}

std::vector<ComparedStrategy> compare(const JobInput& input,
                                      const std::vector<NamedPatch>& strategies,
                                      const std::vector<NamedPatch>& targets,
                                      const Estimator& estimator,
                                      std::vector<std::string>& warnings) {
  std::vector<StrategyResult> answers(strategies.size());
  parallel_for(strategies.size(), [&](std::size_t i) {
    answers[i] = answer_of(input, strategies[i], targets, estimator);
  });
  std::vector<ComparedStrategy> results;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    StrategyResult& answer = answers[i];
    if (answer.error) {
      if (results.empty() || answer.error->kind() != ErrorKind::kInput) throw Error(*answer.error);
      warnings.push_back(
          fmt::format("{} is left out: {}", strategies[i].name, answer.error->what()));
      continue;
    }
    const double peak = static_cast<double>(answer.estimate.totals.device_peak.count());
    const double baseline =
        results.empty() ? peak
                        : static_cast<double>(results.front().estimate.totals.device_peak.count());
    results.push_back({strategies[i].name, strategies[i].grid, std::move(answer.estimate),
                       baseline > 0 ? 1 - peak / baseline : 0, std::move(answer.targets)});
  }
  return results;
}

// Default strategies that change nothing are left out: bf16 for a job in bf16.
void drop_without_effect(std::vector<ComparedStrategy>& rows) {
  const Bytes baseline = rows.front().estimate.totals.device_peak;
  rows.erase(std::remove_if(rows.begin() + 1, rows.end(),
                            [&](const ComparedStrategy& row) {
                              return row.estimate.totals.device_peak == baseline;
                            }),
             rows.end());
}

}  // namespace

StrategyComparison compare_strategies(const JobInput& input, const CompareRequest& request,
                                      const Estimator& estimator) {
  const Grid grid = make_grid(request.grid, input.job);
  std::vector<NamedPatch> targets;
  for (const std::string& name : request.targets) targets.push_back(target_of(name, input.job));
  StrategyComparison comparison;
  comparison.columns = grid.columns;
  comparison.rows =
      compare(input, request.grid.empty() ? strategies_of(request, input.job) : strategies_of(grid),
              targets, estimator, comparison.skipped);
  if (request.grid.empty() && !request.strategies && request.patches.empty())
    drop_without_effect(comparison.rows);
  comparison.baseline = comparison.rows.front().name;
  input.annotate(comparison.rows.front().estimate);
  for (ComparedStrategy& row : comparison.rows) {
    input.withhold(row.estimate.verdict);
    for (ComparedTarget& target : row.targets) input.withhold(target.verdict);
  }
  if (request.ranked) {
    std::stable_sort(
        comparison.rows.begin(), comparison.rows.end(),
        [](const ComparedStrategy& a, const ComparedStrategy& b) { return a.saved > b.saved; });
  }
  return comparison;
}

}  // namespace memfathom
