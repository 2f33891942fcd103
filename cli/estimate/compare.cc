#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate/compare_text.h"
#include "cli/estimate/estimation.h"
#include "cli/estimate/job_source.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/grid.h"
#include "estimator/job/describe.h"
#include "estimator/job/patch.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

struct NamedPatch {
  std::string name;
  Patch patch;
  std::vector<std::string> grid;
};

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

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    if (end > start) names.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

std::vector<NamedPatch> strategies_of(const std::optional<std::string>& list,
                                      const std::vector<std::string>& patches, const Job& job) {
  std::vector<NamedPatch> strategies{{"baseline", {}, {}}};
  std::vector<std::string> names;
  if (list) {
    names = split(*list);
  } else if (patches.empty()) {
    names = default_strategies(job);
  }
  for (const std::string& name : names) {
    if (name != "baseline") strategies.push_back({name, strategy_patch(name, job), {}});
  }
  for (const std::string& file : patches)
    strategies.push_back({file, patch_of(load_document(file)), {}});
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

// One strategy: on the job's own GPU and on every other target. An Error waits for its turn.
struct StrategyResult {
  Estimate estimate;
  std::vector<ComparedTarget> targets;
  std::optional<Error> error;
};

StrategyResult answer_of(const Node& document, const NamedPatch& strategy,
                         const std::vector<NamedPatch>& targets, const Estimation& estimation) {
  StrategyResult answer;
  try {
    const Node changed = patched(document, strategy.patch);
    answer.estimate = estimation.answer(read_job(changed));
    for (const NamedPatch& target : targets) {
      const Estimate estimate = estimation.answer(read_job(patched(changed, target.patch)));
      answer.targets.push_back({target.name, estimate.totals.device_peak, estimate.verdict});
    }
  } catch (const Error& error) {
    answer.error = error;
  }
  return answer;
}

std::vector<ComparedStrategy> compare(const Node& document,
                                      const std::vector<NamedPatch>& strategies,
                                      const std::vector<NamedPatch>& targets,
                                      const Context& context) {
  const Estimation estimation(context);
  std::vector<StrategyResult> answers(strategies.size());
  parallel_for(strategies.size(), [&](std::size_t i) {
    answers[i] = answer_of(document, strategies[i], targets, estimation);
  });
  std::vector<ComparedStrategy> results;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    StrategyResult& answer = answers[i];
    if (answer.error) {
      if (results.empty() || answer.error->kind() != ErrorKind::kInput) throw Error(*answer.error);
      context.warn(fmt::format("{} is left out: {}", strategies[i].name, answer.error->what()));
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

// Of what nobody asked for by name, what changes nothing is left out: bf16 of a job in bf16.
void drop_idle(std::vector<ComparedStrategy>& rows) {
  const Bytes baseline = rows.front().estimate.totals.device_peak;
  rows.erase(std::remove_if(rows.begin() + 1, rows.end(),
                            [&](const ComparedStrategy& row) {
                              return row.estimate.totals.device_peak == baseline;
                            }),
             rows.end());
}

}  // namespace

ExitCode run_compare(const Arguments& arguments, Context& context) {
  OptionParser parser("compare");
  JobSource source;
  std::optional<std::string> list, targets;
  std::vector<std::string> patches, dimensions;
  bool ranked = false;
  source.declare(parser);
  parser.option("--strategies", list);
  parser.list_option("--patch", patches);
  parser.list_option("--grid", dimensions);
  parser.option("--targets", targets);
  parser.flag("--ranked", ranked);
  parser.parse(arguments);
  if (!dimensions.empty() && (list || !patches.empty())) {
    throw Error(ErrorKind::kUsage,
                "compare: --grid stands alone; a strategy can be one of its dimensions: --grid "
                "baseline,checkpointing batch=4,2,1");
  }
  const JobInput input = source.read("compare");
  const Job& job = input.job;
  const Grid grid = make_grid(dimensions, job);
  std::vector<NamedPatch> targeted;
  for (const std::string& name : split(targets.value_or("")))
    targeted.push_back(target_of(name, job));
  StrategyComparison comparison{
      grid.columns,
      compare(input.document,
              dimensions.empty() ? strategies_of(list, patches, job) : strategies_of(grid),
              targeted, context),
      ""};
  if (dimensions.empty() && !list && patches.empty()) drop_idle(comparison.rows);
  comparison.baseline = comparison.rows.front().name;
  Estimate first = comparison.rows.front().estimate;
  input.annotate(first);
  if (ranked) {
    std::stable_sort(
        comparison.rows.begin(), comparison.rows.end(),
        [](const ComparedStrategy& a, const ComparedStrategy& b) { return a.saved > b.saved; });
  }
  if (context.format == Format::kTable) context.out << describe(input.document, job) << "\n\n";
  context.out << (context.format == Format::kJson ? comparison_json(comparison) + "\n"
                                                  : comparison_text(comparison, context));
  for (const std::string& sentence : first.assumptions) context.note("assumed: " + sentence);
  for (const std::string& sentence : first.not_modelled) context.note("not modelled: " + sentence);
  for (const std::string& sentence : first.warnings) context.note("warning: " + sentence);
  return ExitCode::kYes;
}

}  // namespace memfathom
