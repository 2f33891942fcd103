#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/bench.h"
#include "cli/bench_jobs.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "profiler/regression/compare.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr int kHeadlines = 10;

double share_in(std::string_view text, const std::string& whole) {
  const std::string number(text.substr(0, text.size() - 1));
  std::size_t read = 0;
  double percent = -1;
  try {
    percent = std::stod(number, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == 0 || number.find_first_not_of(' ', read) != std::string::npos || !(percent >= 0)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--fail-threshold is \"{}\"; write a share, bytes or both: 5%,256MiB", whole));
  }
  return percent / 100;
}

// "5%", "256MiB" or both with a comma between. What is not named does not fail.
void read_fail_threshold(const std::string& text, CompareOptions& options) {
  options.fail_share = std::numeric_limits<double>::infinity();
  options.fail_bytes = Bytes{std::numeric_limits<std::int64_t>::max()};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    if (part.ends_with('%')) {
      options.fail_share = share_in(part, text);
    } else {
      options.fail_bytes = parse_bytes(part);
    }
    at = end + 1;
  }
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string change_of(const ComparedBenchmark& b) {
  if (b.component == "time")
    return fmt::format("{} → {}", seconds_text(*b.seconds_before), seconds_text(*b.seconds_after));
  return b.before && b.after ? change_text(*b.before, *b.after) : "";
}

// The line a person is to read: what, how much, and which version is to be blamed.
std::string headline(const ComparedBenchmark& b) {
  const bool names_the_operation = b.what.find(b.label) != std::string::npos;
  return fmt::format("{}{}: {}; {}", b.what, names_the_operation ? "" : ", " + b.label,
                     change_of(b), b.blamed);
}

std::string summary_of(const Comparison& comparison) {
  std::string text =
      fmt::format("{}: of {} benchmarks", comparison.verdict(), comparison.benchmarks.size());
  const char* before = " ";
  for (const BenchVerdict verdict :
       {BenchVerdict::kWorse, BenchVerdict::kBetter, BenchVerdict::kAmbiguous,
        BenchVerdict::kMissing, BenchVerdict::kNew, BenchVerdict::kSame}) {
    const int count = comparison.count(verdict);
    if (count == 0) continue;
    text += fmt::format("{}{} {}", before, count, to_string(verdict));
    if (verdict == BenchVerdict::kWorse) {
      text += fmt::format(" ({} failing, {} to be watched)", comparison.count(Severity::kFailure),
                          comparison.count(Severity::kWarning));
    }
    before = ", ";
  }
  return text;
}

std::string stack_text(const Comparison& comparison) {
  if (comparison.stack.empty()) return "the same driver, libraries and framework";
  std::string text;
  for (const StackChange& change : comparison.stack) {
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", change.name, change.before,
                        change.after);
  }
  return text;
}

Style style_of(const ComparedBenchmark& b) {
  if (b.severity == Severity::kFailure) return Style::kBad;
  if (b.severity == Severity::kWarning) return Style::kWarning;
  if (b.verdict == BenchVerdict::kBetter) return Style::kGood;
  return b.verdict == BenchVerdict::kSame ? Style::kDim : Style::kPlain;
}

Table table_of(const Comparison& comparison, bool all) {
  Table table({{"verdict"}, {"benchmark"}, {"component"}, {"change", Align::kRight}, {"reason"}});
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (b.verdict == BenchVerdict::kSame && !all) continue;
    const bool fails = b.severity == Severity::kFailure;
    table.add_row(
        {Cell(fmt::format("{}{}", to_string(b.verdict), fails ? ", fails" : ""), style_of(b)),
         b.name, b.component, change_of(b), b.reason});
  }
  return table;
}

void print_text(const Comparison& comparison, bool all, Context& context) {
  const bool markdown = context.format == Format::kMarkdown;
  const Table table = table_of(comparison, all);
  if (context.format == Format::kCsv) {
    context.out << table.csv();
    return;
  }
  context.out << (markdown ? "**" : "") << summary_of(comparison) << (markdown ? "**" : "")
              << "\n\n";
  int lines = 0;
  int more = 0;
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (b.verdict != BenchVerdict::kWorse) continue;
    if (lines == kHeadlines) {
      ++more;
      continue;
    }
    context.out << (markdown ? "- " : "  ") << headline(b) << '\n';
    ++lines;
  }
  if (more > 0) context.out << (markdown ? "- " : "  ") << "and " << more << " more below\n";
  context.out << (lines > 0 ? "\n" : "") << "stack: " << stack_text(comparison) << '\n';
  if (!table.empty()) context.out << '\n' << rendered(table, context);
}

void print_jobs(const std::vector<JudgedJob>& jobs, Context& context) {
  Table table({{"job"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"available", Align::kRight},
               {"verdict"}});
  for (const JudgedJob& job : jobs) {
    if (!job.error.empty()) {
      table.add_row({job.file, "", "", "", Cell(job.error, Style::kWarning)});
      continue;
    }
    table.add_row(
        {job.file, to_string(job.before), to_string(job.after),
         job.available.count() == 0 ? "" : to_string(job.available),
         Cell(fmt::format("{} → {}", to_string(job.status_before), to_string(job.status_after)),
              job.flips() ? Style::kBad : Style::kPlain)});
  }
  const auto flips =
      std::count_if(jobs.begin(), jobs.end(), [](const JudgedJob& j) { return j.flips(); });
  context.out << fmt::format("\n{} of {} jobs no longer fit\n\n", flips, jobs.size())
              << rendered(table, context);
}

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}
json or_null(const std::optional<Bytes>& value) {
  return value ? json(value->count()) : json(nullptr);
}

json jobs_json(const std::vector<JudgedJob>& jobs) {
  json all = json::array();
  for (const JudgedJob& job : jobs) {
    if (!job.error.empty()) {
      all.push_back({{"job", job.file}, {"error", job.error}});
      continue;
    }
    all.push_back({{"job", job.file},
                   {"before_bytes", job.before.count()},
                   {"after_bytes", job.after.count()},
                   {"verdict_before", to_string(job.status_before)},
                   {"verdict_after", to_string(job.status_after)},
                   {"flips", job.flips()}});
  }
  return all;
}

void print_json(const Comparison& comparison, const std::vector<JudgedJob>& jobs,
                Context& context) {
  json stack = json::array();
  for (const StackChange& change : comparison.stack) {
    stack.push_back({{"name", change.key}, {"before", change.before}, {"after", change.after}});
  }
  json benchmarks = json::array();
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    benchmarks.push_back({{"name", b.name},
                          {"label", b.label},
                          {"verdict", to_string(b.verdict)},
                          {"severity", to_string(b.severity)},
                          {"reason", b.reason},
                          {"component", b.component},
                          {"what", b.what},
                          {"before_bytes", or_null(b.before)},
                          {"after_bytes", or_null(b.after)},
                          {"before_seconds", or_null(b.seconds_before)},
                          {"after_seconds", or_null(b.seconds_after)},
                          {"blamed", b.blamed}});
  }
  context.out << json{{"schema", "memfathom.bench-compare/1"},
                      {"verdict", comparison.verdict()},
                      {"stack_changes", stack},
                      {"benchmarks", benchmarks},
                      {"jobs", jobs_json(jobs)}}
                     .dump(2)
              << '\n';
}

}  // namespace

ExitCode bench_compare(const Arguments& arguments, Context& context) {
  std::string base;
  std::string now;
  std::optional<std::string> fail_threshold;
  std::string jobs_folder, calibration_before, calibration_after;
  bool all = false;
  bool strict = false;
  CompareOptions options;
  OptionParser parser("bench compare");
  parser.positional("BASE", base);
  parser.positional("NEW", now);
  parser.option("--fail-threshold", fail_threshold);
  parser.flag("--fail-on-time", options.time_fails);
  parser.option("--jobs", jobs_folder);
  parser.option("--before", calibration_before);
  parser.option("--after", calibration_after);
  parser.flag("--all", all);
  parser.flag("--strict", strict);
  parser.parse(arguments);
  if (fail_threshold) read_fail_threshold(*fail_threshold, options);
  if (!jobs_folder.empty() && (calibration_before.empty() || calibration_after.empty())) {
    throw Error(ErrorKind::kUsage,
                "bench compare: --jobs needs the calibrations --before and --after; `memfathom "
                "calibrations list` shows them");
  }

  const Comparison comparison =
      compare(bench_file_named(base, context), bench_file_named(now, context), options);
  std::vector<JudgedJob> jobs;
  if (!jobs_folder.empty())
    jobs = judge_jobs(jobs_folder, calibration_before, calibration_after, context);
  if (context.format == Format::kJson) {
    print_json(comparison, jobs, context);
  } else {
    print_text(comparison, all, context);
    if (!jobs.empty() && context.format != Format::kCsv) print_jobs(jobs, context);
  }
  const bool flipped =
      std::any_of(jobs.begin(), jobs.end(), [](const JudgedJob& j) { return j.flips(); });
  if (comparison.verdict() == "worse" || flipped) return ExitCode::kNo;
  return strict && comparison.verdict() == "undecided" ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace memfathom
