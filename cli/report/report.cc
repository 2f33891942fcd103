#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <vector>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "cli/report/pages.h"
#include "core/error.h"
#include "core/suggest.h"
#include "estimator/advise/recommend.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

ExitCode report_estimate(const Arguments& arguments, Context& context) {
  OptionParser parser("report");
  JobSource source;
  bool frontier = false;
  source.declare(parser);
  parser.flag("--frontier", frontier);
  parser.parse(arguments);
  const JobInput input = source.read("report estimate");
  const LocalSession session(find_database(context));
  const Estimator& estimator = session.estimator();
  Estimate estimate = estimator.estimate_as_run(input.job, true);
  input.annotate(estimate);
  Recommendation found;
  const bool fails = estimate.verdict.status == VerdictStatus::kDoesNotFit;
  if (fails || frontier) {
    RecommendOptions options;
    options.frontier = frontier;
    found = answer_recommend(input, options, estimator).recommendation;
  }
  if (fails) estimate.suggestions = suggest(input.document, estimator.search_function(), input.job);
  context.out << report_page(input, estimate, estimator.timeline(input.job), found.frontier,
                             fails ? found.configurations : std::vector<Configuration>{});
  return estimate.verdict.status == VerdictStatus::kDoesNotFit ? ExitCode::kNo : ExitCode::kYes;
}

ExitCode report_calibration(const Arguments& arguments, Context& context) {
  std::string wanted;
  OptionParser parser("report calibration");
  parser.positional("NAME", wanted);
  parser.parse(arguments);
  const std::optional<Store> store = open_database_if_exists(context);
  context.out << calibration_page(lookup_calibration(wanted, store));
  return ExitCode::kYes;
}

ExitCode report_bench(const Arguments& arguments, Context& context) {
  const RequestedComparison asked = requested_comparison("report bench", arguments, context);
  context.out << bench_page(asked);
  return asked.exit_code;
}

struct Page {
  std::string_view name;
  std::string_view figures;  // the command that prints the same values
  ExitCode (*write)(const Arguments&, Context&);
};
constexpr std::array kPages{Page{"estimate", "estimate JOB", report_estimate},
                            Page{"calibration", "calibrations show NAME", report_calibration},
                            Page{"bench", "bench compare BASE NEW", report_bench}};

std::vector<std::string_view> page_names() {
  std::vector<std::string_view> names;
  for (const Page& page : kPages) names.push_back(page.name);
  return names;
}

}  // namespace

ExitCode run_report(const Arguments& arguments, Context& context) {
  const auto page = arguments.empty()
                        ? kPages.end()
                        : std::find_if(kPages.begin(), kPages.end(), [&](const Page& one) {
                            return one.name == arguments.front();
                          });
  if (page == kPages.end()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("report creates a page from an estimate, a calibration or a bench comparison: "
                    "use memfathom report estimate JOB, report calibration "
                    "NAME or report bench BASE NEW{}",
                    arguments.empty() ? ""
                                      : fmt::format("; there is no \"{}\" ({})", arguments.front(),
                                                    suggestion(arguments.front(), page_names()))));
  }
  if (context.format != Format::kTable) {
    throw Error(ErrorKind::kUsage,
                fmt::format("report writes HTML; for numbers use memfathom {} --format json",
                            page->figures));
  }
  return page->write(Arguments(arguments.begin() + 1, arguments.end()), context);
}

}  // namespace memfathom
