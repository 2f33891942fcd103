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
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"

namespace memfathom {
namespace {

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "";
}

Table empty_table() {
  return Table({{"data"},
                {"answered", Align::kRight},
                {"median error", Align::kRight},
                {"p90", Align::kRight},
                {"under by > 10 %", Align::kRight},
                {"covered at 90 %", Align::kRight},
                {"interval", Align::kRight},
                {"spread", Align::kRight},
                {"verdicts right", Align::kRight}});
}

void add_row(Table& table, const AccuracyRow& row) {
  table.add_row({row.name, fmt::format("{}/{}", row.answered, row.rows), percent(row.median),
                 percent(row.p90), percent(row.under), percent(row.coverage), percent(row.width),
                 percent(row.spread), percent(row.right)});
}

AccuracyRequest parsed(const Arguments& arguments) {
  AccuracyRequest request;
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
  parser.parse(arguments);
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
  const AccuracyRequest request = parsed(arguments);
  const LocalSession session(find_database(context));
  const AccuracyReport report = measure_accuracy(request, session.estimator());
  for (const std::string& refusal : report.refusals) context.detail(refusal);
  if (context.format == Format::kJson) {
    context.out << accuracy_json(report).dump(2) << '\n';
    return ExitCode::kYes;
  }
  Table table = empty_table();
  for (const AccuracyRow& row : report.rows) add_row(table, row);
  context.out << rendered(table, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
