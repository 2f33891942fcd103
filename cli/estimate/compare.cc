#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/compare_text.h"
#include "cli/estimate/elapsed_line.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "estimator/job/describe.h"
#include "estimator/json/comparison_json.h"
#include "estimator/json/estimate_json.h"
#include "estimator/session/compare_strategies.h"

namespace memfathom {
namespace {

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

}  // namespace

ExitCode run_compare(const Arguments& arguments, Context& context) {
  OptionParser parser("compare");
  JobSource source;
  CompareRequest request;
  std::optional<std::string> strategies, targets;
  std::vector<std::string> patches;
  source.declare(parser);
  parser.option("--strategies", strategies);
  parser.list_option("--patch", patches);
  parser.list_option("--grid", request.grid);
  parser.option("--targets", targets);
  parser.flag("--ranked", request.ranked);
  parser.parse(source.without_command(arguments));
  if (!request.grid.empty() && (strategies || !patches.empty())) {
    throw Error(
        ErrorKind::kUsage,
        "compare: --grid cannot be combined with strategies; a strategy can be a dimension: --grid "
        "baseline,checkpointing batch=4,2,1");
  }
  const JobInput input = source.read("compare");
  if (strategies) request.strategies = split(*strategies);
  for (const std::string& file : patches)
    request.patches.push_back({file, patch_of(load_document(file)), {}});
  request.targets = split(targets.value_or(""));

  const LocalSession session(find_database(context));
  const StrategyComparison comparison = [&] {
    const ElapsedLine shown(context.err, progress_mode(STDERR_FILENO, context.quiet), "comparing");
    return compare_strategies(input, request, session.estimator());
  }();
  for (const std::string& sentence : comparison.skipped) context.warn(sentence);
  if (context.format == Format::kTable)
    context.out << describe(input.document, input.job) << "\n\n";
  context.out << (context.format == Format::kJson
                      ? to_text(comparison_json(comparison), kIndented) + "\n"
                      : comparison_text(comparison, context));
  const auto baseline =
      std::find_if(comparison.rows.begin(), comparison.rows.end(),
                   [&](const ComparedStrategy& row) { return row.name == comparison.baseline; });
  for (const std::string& sentence : baseline->estimate.assumptions)
    context.note("assumed: " + sentence);
  for (const std::string& sentence : baseline->estimate.not_modelled)
    context.note("not modelled: " + sentence);
  for (const std::string& sentence : baseline->estimate.warnings)
    context.note("warning: " + sentence);
  return ExitCode::kYes;
}

}  // namespace memfathom
