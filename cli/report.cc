#include <fmt/format.h>

#include <ostream>

#include "cli/commands.h"
#include "cli/estimation.h"
#include "cli/job_source.h"
#include "cli/option_parser.h"
#include "cli/report_page.h"
#include "core/error.h"
#include "estimator/advise/recommend.h"

namespace memfathom {
namespace {

ExitCode report_estimate(const Arguments& arguments, Context& context) {
  OptionParser parser("report");
  JobSource source;
  source.declare(parser);
  parser.parse(arguments);
  const JobInput input = source.read("report estimate");
  const Estimation estimation(context);
  Estimate estimate = estimation.answer_as_run(input.job, true);
  input.annotate(estimate);
  if (estimate.verdict.status == VerdictStatus::kDoesNotFit)
    estimate.suggestions = suggest(input.document, estimation.for_search());
  context.out << report_page(input, estimate, estimation.timeline(input.job));
  return estimate.verdict.status == VerdictStatus::kDoesNotFit ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace

ExitCode run_report(const Arguments& arguments, Context& context) {
  if (context.format != Format::kTable) {
    throw Error(ErrorKind::kUsage,
                "report writes HTML; for figures use memfathom estimate --format json");
  }
  if (arguments.empty() || arguments.front() != "estimate") {
    throw Error(ErrorKind::kUsage,
                fmt::format("report makes a page of an estimate: write memfathom report estimate "
                            "JOB --output page.html{}",
                            arguments.empty() ? "" : fmt::format(", not {}", arguments.front())));
  }
  return report_estimate(Arguments(arguments.begin() + 1, arguments.end()), context);
}

}  // namespace memfathom
