#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate_batch.h"
#include "cli/estimate_text.h"
#include "cli/estimation.h"
#include "cli/job_options.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "estimator/answer/estimate_json.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

bool is_whole_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

ExitCode answer_batch(const std::string& file, Context& context) {
  const Estimation estimation(context);
  if (file == "-") return estimate_batch(std::cin, "standard input", estimation, context);
  std::ifstream input(file);
  if (!input) throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; --batch takes a file of JSON lines, or - for standard input", file));
  return estimate_batch(input, file, estimation, context);
}

ExitCode verdict_code(const Estimate& estimate, bool strict) {
  if (estimate.verdict.status == VerdictStatus::kDoesNotFit) return ExitCode::kNo;
  const bool undecided = estimate.verdict.status == VerdictStatus::kTight || estimate.calibration.status == CalibrationStatus::kNone;
  return strict && undecided ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace

ExitCode run_estimate(const Arguments& arguments, Context& context) {
  OptionParser parser("estimate");
  JobOptions options;
  std::optional<std::string> file, batch;
  bool strict = false;
  bool explain = false;
  options.declare(parser);
  parser.positional("JOB", file);
  parser.option("--config,--from", file);
  parser.option("--batch", batch);
  parser.flag("--strict", strict);
  parser.flag("--explain", explain);
  parser.parse(arguments);

  // In the old scripts --batch is the batch size.
  const bool batch_is_size = batch && is_whole_number(*batch);
  if (batch && !batch_is_size) return answer_batch(*batch, context);
  if (!file && !options.any_given()) {
    throw Error(ErrorKind::kUsage, "estimate needs a job: a YAML or JSON file, --model NAME, or --batch FILE.jsonl (see memfathom estimate --help)");
  }
  Node document = options.document(file.value_or(""));
  if (batch_is_size) document.assign("training.batch_size", Node::integer(std::stoll(*batch)));
  const Job job = read_job(document);
  const Estimate estimate = Estimation(context).answer(job);
  if (context.format == Format::kJson) {
    context.out << to_json_text(estimate, true) << '\n';
  } else {
    context.out << estimate_text(estimate, context, explain);
  }
  return verdict_code(estimate, strict);
}

}  // namespace memfathom
