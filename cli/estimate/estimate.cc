#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate/estimate_batch.h"
#include "cli/estimate/estimate_text.h"
#include "cli/estimate/estimation.h"
#include "cli/estimate/job_source.h"
#include "cli/estimate/recommend.h"
#include "cli/estimate/recommend_text.h"
#include "cli/estimate/rule_text.h"
#include "cli/option_parser.h"
#include "cli/status/gpu_text.h"
#include "core/error.h"
#include "estimator/advise/recommend.h"
#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate_json.h"
#include "estimator/job/describe.h"

namespace memfathom {
namespace {

// Beyond this (a linear layer for each of thousands of experts) each change takes seconds.
constexpr std::int64_t kLayersToTry = 6000;

ExitCode answer_batch(const std::string& file, const BatchOptions& question, Context& context) {
  if (context.format == Format::kCsv || context.format == Format::kMarkdown) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--batch {} answers in JSON lines, one for each job; leave --format "
                            "{} out",
                            file, context.format == Format::kCsv ? "csv" : "markdown"));
  }
  const Estimation estimation(context);
  if (file == "-") return estimate_batch(std::cin, "standard input", question, estimation, context);
  std::ifstream input(file);
  if (!input)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}: cannot be read; --batch takes a file of JSON lines, or - for standard input",
            file));
  return estimate_batch(input, file, question, estimation, context);
}

ExitCode verdict_code(const Estimate& estimate, bool strict) {
  if (estimate.verdict.status == VerdictStatus::kDoesNotFit) return ExitCode::kNo;
  return strict && is_undecided(estimate) ? ExitCode::kUndecided : ExitCode::kYes;
}

// Single changes are half an answer where none of them is enough.
const char* hint_of(const std::vector<Suggestion>& suggestions) {
  const bool enough = std::any_of(suggestions.begin(), suggestions.end(),
                                  [](const Suggestion& one) { return one.fits; });
  return enough ? "" : "none of these is enough alone; memfathom recommend looks for what is\n";
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
  parser.parse(arguments);

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
  const Estimation estimation(context);
  if (recommends || settings.asked()) return recommend_for(input, settings, estimation, context);
  Estimate estimate = estimation.estimate_as_run(input.job, explain);
  input.annotate(estimate);
  const bool does_not_fit = estimate.verdict.status == VerdictStatus::kDoesNotFit;
  if (does_not_fit && estimate.layers > kLayersToTry) {
    estimate.warnings.push_back(fmt::format(
        "changes were not tried: a job of {} layers takes a while each; memfathom recommend does",
        estimate.layers));
  } else if (does_not_fit) {
    estimate.suggestions = suggest(input.document, estimation.search_function());
  }
  std::optional<RuleOfThumb> rule;
  if (by_thumb) rule = rule_of_thumb(input.document, estimate);
  if (by_thumb && !rule)
    context.warn("the rule of thumb needs an image, a width and a depth; this job has none");
  const LiveGpu* gpu = estimation.live_target(input.job);
  if (context.format == Format::kJson) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json_text(estimate, true));
    json["job"] = describe(input.document, input.job);
    if (rule) json["rule_of_thumb"] = rule_json(*rule);
    if (gpu != nullptr) json["device"] = gpu_json(*gpu);
    context.out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << '\n';
  } else {
    if (gpu != nullptr && context.format != Format::kCsv) context.out << gpu_text(*gpu, context);
    context.out << estimate_text(estimate, describe(input.document, input.job), context, explain);
    if (rule && context.format != Format::kCsv) context.out << rule_text(*rule, estimate);
    if (!estimate.suggestions.empty() && context.format != Format::kCsv)
      context.out << "\nwhat would save memory:\n"
                  << suggestions_text(estimate.suggestions, context)
                  << hint_of(estimate.suggestions);
  }
  return verdict_code(estimate, strict);
}

}  // namespace memfathom
