#include "estimator/accuracy/accuracy.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/job/job_options.h"
#include "cli/observe/reliability_plot.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace memfathom {
namespace {

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "";
}

std::string band_of(const AccuracyRow& row) {
  if (!row.band_low || !row.band_high) return "";
  return fmt::format("{:.1f} to {}", 100 * *row.band_low, percent(row.band_high));
}

Table empty_table() {
  return Table({{"data"},
                {"answered", Align::kRight},
                {"median error", Align::kRight},
                {"p90", Align::kRight},
                {"under by > 10 %", Align::kRight},
                {"covered at 90 %", Align::kRight},
                {"binomial band", Align::kRight},
                {"interval", Align::kRight},
                {"spread", Align::kRight},
                {"verdicts right", Align::kRight}});
}

void add_row(Table& table, const AccuracyRow& row) {
  table.add_row({row.name, fmt::format("{}/{}", row.answered, row.rows), percent(row.median),
                 percent(row.p90), percent(row.under), percent(row.coverage), band_of(row),
                 percent(row.width), percent(row.spread), percent(row.right)});
}

LeftOut left_out_by(const std::string& name) {
  if (name.empty()) return LeftOut::kNothing;
  if (name == "family") return LeftOut::kFamily;
  if (name == "stack") return LeftOut::kStack;
  if (name == "source") return LeftOut::kSource;
  throw Error(ErrorKind::kUsage,
              fmt::format("--leave-out is \"{}\"; it must be family, stack or source", name));
}

// How reliable the intervals and probabilities are.
void print_reliability(const AccuracyReport& report, Context& context) {
  if (!report.reliability.empty()) {
    Table table({{"promised"}, {"covered", Align::kRight}});
    for (const ReliabilityPoint& point : report.reliability)
      table.add_row({fmt::format("{:.0f} %", 100 * point.level), percent(point.coverage)});
    context.out << '\n' << rendered(table, context);
  }
  if (report.brier)
    context.out << fmt::format(
        "\nBrier score of the probability of fitting: {:.3f} ({} verdicts)\n", *report.brier,
        report.verdicts);
}

AccuracyRequest parsed(const Arguments& arguments, std::string& plot) {
  AccuracyRequest request;
  std::string left_out;
  std::int64_t anchors = 0;
  std::int64_t folds = 0;
  OptionParser parser("accuracy");
  const auto job = std::make_shared<JobOptions>();
  job->declare(parser);
  parser.option("--data", request.data);
  parser.option("--only", request.filter.only);
  parser.flag("--groups", request.by_group);
  parser.option("--anchors", anchors);
  parser.option("--folds", folds);
  parser.option("--leave-out", left_out);
  parser.option("--plot", plot);
  parser.parse(arguments);
  request.left_out = left_out_by(left_out);
  request.filter.rewritten = [job](Node document) { return job->document(std::move(document)); };
  if (request.data.empty())
    throw Error(
        ErrorKind::kUsage,
        "accuracy needs --data DIR: a folder of measured jobs (see memfathom accuracy --help)");
  if (anchors < 0 || folds < 0 || folds == 1 || (anchors > 0 && folds > 0)) {
    throw Error(ErrorKind::kUsage,
                "--anchors N (1 or more runs) and --folds K (2 or more) calibrate in two different "
                "ways; use one of them");
  }
  request.anchors = static_cast<std::size_t>(anchors);
  request.folds = static_cast<std::size_t>(folds);
  return request;
}

}  // namespace

ExitCode run_accuracy(const Arguments& arguments, Context& context) {
  std::string plot;
  const AccuracyRequest request = parsed(arguments, plot);
  const LocalSession session(find_database(context));
  const AccuracyReport report = measure_accuracy(request, session.estimator());
  for (const std::string& refusal : report.refusals) context.detail(refusal);
  if (!plot.empty()) write_file_atomically(plot, reliability_plot(report.reliability));
  if (context.format == Format::kJson) {
    context.out << accuracy_json(report).dump(2) << '\n';
    return ExitCode::kYes;
  }
  Table table = empty_table();
  for (const AccuracyRow& row : report.rows) add_row(table, row);
  context.out << rendered(table, context);
  if (context.format != Format::kCsv) print_reliability(report, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
