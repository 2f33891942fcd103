#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate/estimation.h"
#include "cli/observe/measured_jobs.h"
#include "cli/observe/quantile.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/on_all_cores.h"

namespace memfathom {
namespace {

using nlohmann::json;

struct Answered {
  const MeasuredJob* row = nullptr;
  bool answered = false;
  double error = 0;       // (estimated - measured) / measured
  double outside = 0;     // device figures: what the estimate has outside the allocator, bytes
  bool left_out = false;  // an anchor: it was used, so it is not scored
  bool covered = false;
  double width = 0;  // of the interval, relative to the measurement
  bool verdict_right = false;
};

std::optional<Bytes> figure_of(const Estimate& estimate, const MeasuredJob& row) {
  if (!row.phase.empty()) {
    for (const PhaseLine& phase : estimate.phases) {
      if (phase.name == row.phase)
        return row.metric == Metric::kAllocated ? phase.allocated_peak : phase.reserved;
    }
    return std::nullopt;
  }
  switch (row.metric) {
    case Metric::kAllocated: return estimate.totals.allocated_peak;
    case Metric::kReserved: return estimate.totals.reserved_peak;
    case Metric::kDevice: return estimate.totals.device_peak;
  }
  return std::nullopt;
}

Answered answer(const MeasuredJob& row, const Estimation& estimation) {
  Answered result;
  result.row = &row;
  try {
    const Estimate estimate = estimation.answer_as_run(row.job);
    if (row.fits) {
      result.answered = estimate.verdict.status != VerdictStatus::kUnknown;
      result.verdict_right = (estimate.verdict.status != VerdictStatus::kDoesNotFit) == *row.fits;
      return result;
    }
    const std::optional<Bytes> figure = figure_of(estimate, row);
    if (!figure || row.bytes->count() == 0) return result;
    const double measured = static_cast<double>(row.bytes->count());
    result.answered = true;
    result.outside =
        static_cast<double>((estimate.totals.device_peak - estimate.totals.reserved_peak).count());
    result.error = (static_cast<double>(figure->count()) - measured) / measured;
    result.covered =
        *row.bytes >= estimate.totals.device_low && *row.bytes <= estimate.totals.device_high;
    result.width =
        static_cast<double>((estimate.totals.device_high - estimate.totals.device_low).count()) /
        measured;
  } catch (const Error&) {
    // Counted as unanswered, never guessed.
  }
  return result;
}

std::vector<Answered> answer_all(const std::vector<MeasuredJob>& rows,
                                 const Estimation& estimation) {
  std::vector<Answered> answers(rows.size());
  on_all_cores(rows.size(), [&](std::size_t i) { answers[i] = answer(rows[i], estimation); });
  return answers;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[values.size() / 2]
                                : (values[values.size() / 2 - 1] + values[values.size() / 2]) / 2;
}

// What a row says the constant of its card is: measured minus reserved.
double constant_of(const Answered& a) {
  const double measured = static_cast<double>(a.row->bytes->count());
  return measured - (measured * (1 + a.error) - a.outside);
}

// The error of a row if its card's constant were `constant`.
void use_constant(Answered& a, double constant) {
  const double measured = static_cast<double>(a.row->bytes->count());
  a.error = (measured * (1 + a.error) - a.outside + constant - measured) / measured;
  a.outside = constant;
}

std::map<std::string, std::vector<Answered*>> device_groups(std::vector<Answered>& answers) {
  std::map<std::string, std::vector<Answered*>> groups;
  for (Answered& a : answers) {
    if (a.answered && a.row->bytes && a.row->metric == Metric::kDevice && a.row->phase.empty()) {
      groups[a.row->group.empty() ? a.row->dataset : a.row->group].push_back(&a);
    }
  }
  return groups;
}

// So many of a group's rows, spread evenly over it.
std::vector<Answered*> anchors_of(const std::vector<Answered*>& rows, std::size_t count) {
  std::vector<Answered*> anchors;
  for (std::size_t i = 0; i < count; ++i) {
    anchors.push_back(rows[i * (rows.size() - 1) / std::max<std::size_t>(count - 1, 1)]);
  }
  return anchors;
}

std::vector<double> constants_of(const std::vector<Answered*>& rows) {
  std::vector<double> constants;
  for (const Answered* row : rows) constants.push_back(constant_of(*row));
  return constants;
}

// How far the constants that the rows speak for lie apart, relative to what was measured.
double disagreement(const std::vector<Answered*>& rows) {
  const double middle = median_of(constants_of(rows));
  double sum = 0;
  for (const Answered* row : rows) {
    sum += std::abs(constant_of(*row) - middle) / static_cast<double>(row->row->bytes->count());
  }
  return sum;
}

bool is_of_unknown_age(const MeasuredJob& row) {
  return row.job.target.gpu.empty() && row.job.target.stack.version.empty();
}

// The same rows, answered as if those that name neither card nor stack had run under PyTorch < 2.0.
std::vector<Answered> answer_as_older(const std::vector<MeasuredJob>& rows,
                                      const Estimation& estimation) {
  std::vector<Answered> answers(rows.size());
  on_all_cores(rows.size(), [&](std::size_t i) {
    if (!is_of_unknown_age(rows[i])) return;
    MeasuredJob older = rows[i];
    older.job.target.stack.version = "1.13";
    answers[i] = answer(older, estimation);
    answers[i].row = &rows[i];
  });
  return answers;
}

// As if each group were a new card on which `count` runs were made: they fix its constant and,
// where the rows do not say it, whether its stack is older than PyTorch 2.0 (cuDNN's workspaces
// then were others): the reading under which the anchors agree better. The others are scored.
void calibrate_by_anchors(std::vector<Answered>& answers, std::vector<Answered> older,
                          std::size_t count) {
  for (auto& [name, rows] : device_groups(answers)) {
    if (rows.size() <= count) continue;
    std::vector<Answered*> as_older;
    for (const Answered* row : rows) {
      Answered& other = older[static_cast<std::size_t>(row - answers.data())];
      if (other.answered) as_older.push_back(&other);
    }
    if (as_older.size() == rows.size() &&
        disagreement(anchors_of(as_older, count)) < disagreement(anchors_of(rows, count))) {
      for (std::size_t i = 0; i < rows.size(); ++i) *rows[i] = *as_older[i];
    }
    const std::vector<Answered*> anchors = anchors_of(rows, count);
    const double constant = median_of(constants_of(anchors));
    for (Answered* anchor : anchors) anchor->left_out = true;
    for (Answered* row : rows) use_constant(*row, constant);
  }
}

// Out of fold: the constant of each row comes from the rows of its group in the other folds.
void calibrate_by_folds(std::vector<Answered>& answers, std::size_t folds) {
  for (auto& [name, rows] : device_groups(answers)) {
    if (rows.size() < 2 * folds) continue;
    std::vector<double> constants(folds);
    for (std::size_t fold = 0; fold < folds; ++fold) {
      std::vector<double> others;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % folds != fold) others.push_back(constant_of(*rows[i]));
      }
      constants[fold] = median_of(others);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) use_constant(*rows[i], constants[i % folds]);
  }
}

struct Line {
  int rows = 0;
  std::vector<double> errors;
  std::vector<double> widths;
  int answered = 0, covered = 0, right = 0, verdicts = 0;
};

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }

std::map<std::string, Line> lines_of(const std::vector<Answered>& answers, bool by_group) {
  std::map<std::string, Line> lines;
  for (const Answered& a : answers) {
    if (a.left_out) continue;
    const std::string name = by_group && !a.row->group.empty() ? a.row->group : a.row->dataset;
    Line& line =
        lines[fmt::format("{}:{}", name, a.row->fits ? "verdict" : to_string(a.row->metric))];
    ++line.rows;
    if (!a.answered) continue;
    ++line.answered;
    if (a.row->fits) {
      ++line.verdicts;
      line.right += a.verdict_right ? 1 : 0;
      continue;
    }
    line.errors.push_back(a.error);
    line.widths.push_back(a.width);
    line.covered += a.covered ? 1 : 0;
  }
  return lines;
}

double share_under(const Line& line, double limit) {
  const auto count =
      std::count_if(line.errors.begin(), line.errors.end(), [&](double e) { return e < -limit; });
  return line.errors.empty() ? 0
                             : static_cast<double>(count) / static_cast<double>(line.errors.size());
}

std::vector<double> absolute(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return errors;
}

bool is_device(const std::string& name) { return name.ends_with(":device"); }

}  // namespace

ExitCode run_accuracy(const Arguments& arguments, Context& context) {
  OptionParser parser("accuracy");
  std::string data;
  bool groups = false;
  std::int64_t anchors = 0;
  std::int64_t folds = 0;
  parser.option("--data", data);
  parser.flag("--groups", groups);
  parser.option("--anchors", anchors);
  parser.option("--folds", folds);
  parser.parse(arguments);
  if (data.empty())
    throw Error(
        ErrorKind::kUsage,
        "accuracy needs --data DIR: a folder of measured jobs (see memfathom accuracy --help)");

  if (anchors < 0 || folds < 0 || folds == 1 || (anchors > 0 && folds > 0)) {
    throw Error(ErrorKind::kUsage,
                "--anchors N (1 or more runs) and --folds K (2 or more) calibrate in two different "
                "ways; use one of them");
  }
  const std::vector<MeasuredJob> rows = read_measured_jobs(data);
  const Estimation estimation(context);
  std::vector<Answered> answers = answer_all(rows, estimation);
  if (anchors > 0) {
    calibrate_by_anchors(answers, answer_as_older(rows, estimation),
                         static_cast<std::size_t>(anchors));
  }
  if (folds > 0) calibrate_by_folds(answers, static_cast<std::size_t>(folds));
  const std::map<std::string, Line> lines = lines_of(answers, groups);
  Table table({{"data"},
               {"answered", Align::kRight},
               {"median error", Align::kRight},
               {"p90", Align::kRight},
               {"under by > 10 %", Align::kRight},
               {"covered at 90 %", Align::kRight},
               {"verdicts right", Align::kRight}});
  const bool recalibrated =
      anchors > 0 || folds > 0;  // the intervals belong to the other constants
  json list = json::array();
  for (const auto& [name, line] : lines) {
    const std::vector<double> errors = absolute(line.errors);
    const bool measured = !errors.empty();
    const double covered =
        measured ? static_cast<double>(line.covered) / static_cast<double>(errors.size()) : 0;
    table.add_row(
        {name, fmt::format("{}/{}", line.answered, line.rows),
         measured ? percent(quantile(errors, 0.5)) : "",
         measured ? percent(quantile(errors, 0.9)) : "",
         measured ? percent(share_under(line, 0.1)) : "",
         measured && is_device(name) && !recalibrated ? percent(covered) : "",
         line.verdicts > 0 ? percent(static_cast<double>(line.right) / line.verdicts) : ""});
    json entry{{"data", name}, {"rows", line.rows}, {"answered", line.answered}};
    if (measured) {
      entry["median_error"] = quantile(errors, 0.5);
      entry["p90_error"] = quantile(errors, 0.9);
      entry["under_by_10_percent"] = share_under(line, 0.1);
    }
    if (measured && is_device(name) && !recalibrated) {
      entry["coverage"] = covered;
      entry["median_width"] = quantile(line.widths, 0.5);
    }
    if (line.verdicts > 0)
      entry["verdicts_right"] = static_cast<double>(line.right) / line.verdicts;
    list.push_back(std::move(entry));
  }
  if (context.format == Format::kJson) {
    context.out << json{{"schema", "memfathom.accuracy/1"}, {"data", list}}.dump(2) << '\n';
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

}  // namespace memfathom
