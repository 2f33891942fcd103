#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate/job_options.h"
#include "cli/observe/recalibration.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

using nlohmann::json;

struct AccuracyLine {
  int rows = 0;
  std::vector<double> errors;
  std::vector<double> widths;
  int answered = 0, covered = 0, right = 0, verdicts = 0;
};

std::map<std::string, AccuracyLine> lines_of(const std::vector<ScoredJob>& scores, bool by_group) {
  std::map<std::string, AccuracyLine> lines;
  for (const ScoredJob& scored : scores) {
    if (scored.left_out) continue;
    const MeasuredJob& row = *scored.row;
    AccuracyLine& line =
        lines[fmt::format("{}:{}", by_group && !row.group.empty() ? row.group : row.dataset,
                          row.fits ? "verdict" : to_string(row.metric))];
    ++line.rows;
    if (!scored.answered) continue;
    ++line.answered;
    if (row.fits) {
      ++line.verdicts;
      line.right += scored.verdict_right ? 1 : 0;
      continue;
    }
    line.errors.push_back(scored.error);
    line.widths.push_back(scored.width);
    line.covered += scored.covered ? 1 : 0;
  }
  return lines;
}

double share_of(std::ptrdiff_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What the command says of a line; what was not measured is absent.
struct AccuracySummary {
  std::optional<double> median, p90, under;
  std::optional<double> coverage, width;  // of device figures: their 90 % intervals
  std::optional<double> spread;           // of the errors: what nine in ten lie within
  std::optional<double> right;
};

AccuracySummary summary_of(const AccuracyLine& line, bool has_intervals) {
  AccuracySummary summary;
  if (line.verdicts > 0) summary.right = share_of(line.right, line.answered);
  if (line.errors.empty()) return summary;
  std::vector<double> sizes = line.errors;
  for (double& error : sizes) error = std::abs(error);
  summary.median = quantile(sizes, 0.5);
  summary.p90 = quantile(sizes, 0.9);
  summary.under = share_of(std::count_if(line.errors.begin(), line.errors.end(),
                                         [](double error) { return error < -0.1; }),
                           line.errors.size());
  if (!has_intervals) return summary;
  summary.coverage = share_of(line.covered, line.errors.size());
  summary.width = quantile(line.widths, 0.5);
  summary.spread = quantile(line.errors, 0.95) - quantile(line.errors, 0.05);
  return summary;
}

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

void add_row(Table& table, const std::string& name, const AccuracyLine& line,
             const AccuracySummary& summary) {
  table.add_row({name, fmt::format("{}/{}", line.answered, line.rows), percent(summary.median),
                 percent(summary.p90), percent(summary.under), percent(summary.coverage),
                 percent(summary.width), percent(summary.spread), percent(summary.right)});
}

json to_json(const std::string& name, const AccuracyLine& line, const AccuracySummary& summary) {
  json entry{{"data", name}, {"rows", line.rows}, {"answered", line.answered}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) entry[key] = *value;
  };
  add("median_error", summary.median);
  add("p90_error", summary.p90);
  add("under_by_10_percent", summary.under);
  add("coverage", summary.coverage);
  add("median_width", summary.width);
  add("error_spread", summary.spread);
  add("verdicts_right", summary.right);
  return entry;
}

struct AccuracyOptions {
  std::string data;
  MeasuredJobsFilter filter;
  bool groups = false;
  std::int64_t anchors = 0;
  std::int64_t folds = 0;

  bool has_recalibration() const { return anchors > 0 || folds > 0; }
};

AccuracyOptions parsed(const Arguments& arguments) {
  AccuracyOptions options;
  OptionParser parser("accuracy");
  const auto job = std::make_shared<JobOptions>();
  job->declare(parser);
  parser.option("--data", options.data);
  parser.option("--only", options.filter.only);
  parser.flag("--groups", options.groups);
  parser.option("--anchors", options.anchors);
  parser.option("--folds", options.folds);
  parser.parse(arguments);
  options.filter.rewritten = [job](Node document) { return job->document(std::move(document)); };
  if (options.data.empty())
    throw Error(
        ErrorKind::kUsage,
        "accuracy needs --data DIR: a folder of measured jobs (see memfathom accuracy --help)");
  if (options.anchors < 0 || options.folds < 0 || options.folds == 1 ||
      (options.anchors > 0 && options.folds > 0)) {
    throw Error(ErrorKind::kUsage,
                "--anchors N (1 or more runs) and --folds K (2 or more) calibrate in two different "
                "ways; use one of them");
  }
  return options;
}

}  // namespace

ExitCode run_accuracy(const Arguments& arguments, Context& context) {
  const AccuracyOptions options = parsed(arguments);
  const std::vector<MeasuredJob> rows = read_measured_jobs(options.data, options.filter);
  const Estimation estimation(context);
  std::vector<ScoredJob> scores = score_all(rows, estimation);
  for (const ScoredJob& scored : scores) {
    if (!scored.refusal.empty())
      context.detail(fmt::format("{}: {}", scored.row->id, scored.refusal));
  }
  if (options.anchors > 0)
    calibrate_by_anchors(scores, estimation, static_cast<std::size_t>(options.anchors));
  if (options.folds > 0) calibrate_by_folds(scores, static_cast<std::size_t>(options.folds));

  Table table = empty_table();
  json list = json::array();
  for (const auto& [name, line] : lines_of(scores, options.groups)) {
    // The intervals belong to the constants that recalibration replaced.
    const bool has_intervals = name.ends_with(":device") && !options.has_recalibration();
    const AccuracySummary summary = summary_of(line, has_intervals);
    add_row(table, name, line, summary);
    list.push_back(to_json(name, line, summary));
  }
  if (context.format == Format::kJson) {
    context.out << json{{"schema", "memfathom.accuracy/1"}, {"data", list}}.dump(2) << '\n';
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

}  // namespace memfathom
