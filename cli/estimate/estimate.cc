#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/estimate_batch.h"
#include "cli/estimate/recommend.h"
#include "cli/estimate/recommend_text.h"
#include "cli/estimate/rule_text.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "cli/text/estimate_text.h"
#include "cli/text/gpu_text.h"
#include "core/error.h"
#include "estimator/job/describe.h"
#include "estimator/json/answer_json.h"
#include "estimator/json/estimate_json.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

ExitCode answer_batch(const std::string& file, const BatchOptions& question, Context& context) {
  if (context.format == Format::kCsv || context.format == Format::kMarkdown) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--batch {} writes JSON lines, one per job; remove --format {}", file,
                            context.format == Format::kCsv ? "csv" : "markdown"));
  }
  const LocalSession session(find_database(context));
  if (file == "-")
    return estimate_batch(std::cin, "standard input", question, session.estimator(), context);
  std::ifstream input(file);
  if (!input)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}: cannot be read; --batch requires a file of JSON lines, or - for standard input",
            file));
  return estimate_batch(input, file, question, session.estimator(), context);
}

ExitCode verdict_code(const Estimate& estimate, bool strict) {
  if (estimate.verdict.status == VerdictStatus::kDoesNotFit) return ExitCode::kNo;
  return strict && is_undecided(estimate) ? ExitCode::kUndecided : ExitCode::kYes;
}

// Points to `recommend` if no single change is enough.
const char* hint_of(const std::vector<Suggestion>& suggestions) {
  const bool enough = std::any_of(suggestions.begin(), suggestions.end(),
                                  [](const Suggestion& one) { return one.fits; });
  return enough ? "" : "no single change is enough; run memfathom recommend for combinations\n";
}

void print_text(const EstimateAnswer& answer, const JobInput& input, bool explain,
                const Context& context) {
  const Estimate& estimate = answer.estimate;
  const bool for_people = context.format != Format::kCsv;
  if (answer.gpu != nullptr && for_people) context.out << gpu_text(*answer.gpu, context);
  context.out << estimate_text(estimate, describe(input.document, input.job), context, explain);
  if (answer.rule && for_people) context.out << rule_text(*answer.rule, estimate);
  if (!estimate.suggestions.empty() && for_people)
    context.out << "\nchanges that save memory:\n"
                << suggestions_text(estimate.suggestions, context) << hint_of(estimate.suggestions);
}

}  // namespace

ExitCode run_estimate(const Arguments& arguments, Context& context) {
  OptionParser parser("estimate");
  JobSource source;
  RecommendSettings settings;
  bool strict = false;
  bool explain = false;
  bool recommends = false;
  bool by_thumb = false;
  source.declare(parser);
  settings.declare(parser);
  parser.flag("--strict", strict);
  parser.flag("--explain", explain);
  parser.flag("--recommend", recommends);
  parser.flag("--rule-of-thumb", by_thumb);
  parser.parse(source.without_command(arguments));

  if (const std::optional<std::string> file = source.batch_file()) {
    if (recommends || settings.asked() || by_thumb) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--batch {} only estimates; --recommend, --auto, --grid, --by-memory "
                              "and --rule-of-thumb take one job at a time",
                              *file));
    }
    return answer_batch(*file, {source.reader(), explain, strict}, context);
  }
  const JobInput input = source.read("estimate");
  const LocalSession session(find_database(context));
  if (recommends || settings.asked())
    return recommend_for(input, settings, session.estimator(), context);
  const EstimateAnswer answer = answer_estimate(input, {explain, by_thumb}, session.estimator());
  if (by_thumb && !answer.rule)
    context.warn("the rule of thumb needs an image, a width and a depth; this job has none");
  if (context.format == Format::kJson) {
    context.out << to_text(answer_json(answer, input), kIndented) << '\n';
  } else {
    print_text(answer, input, explain, context);
  }
  return verdict_code(answer.estimate, strict);
}

}  // namespace memfathom
