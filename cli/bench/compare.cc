#include "cli/bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/bench/bench.h"
#include "cli/bench/compare_text.h"
#include "cli/bench/job_verdicts.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/parse_number.h"
#include "profiler/regression/compare.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr int kHeadlines = 10;

double share_in(std::string_view text, const std::string& whole) {
  std::string_view number = text.substr(0, text.size() - 1);
  while (number.starts_with(' ')) number.remove_prefix(1);
  while (number.ends_with(' ')) number.remove_suffix(1);
  const std::optional<double> percent = parse_number<double>(number);
  if (!percent || *percent < 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--fail-threshold is \"{}\"; write a share, bytes or both: 5%,256MiB", whole));
  }
  return *percent / 100;
}

Style style_of(const ComparedBenchmark& b) {
  if (b.severity == Severity::kFailure) return Style::kBad;
  if (b.severity == Severity::kWarning) return Style::kWarning;
  if (b.verdict == BenchVerdict::kBetter) return Style::kGood;
  return b.verdict == BenchVerdict::kSame ? Style::kDim : Style::kPlain;
}

Table table_of(const BenchComparison& comparison, bool all) {
  Table table({{"verdict"}, {"benchmark"}, {"component"}, {"change", Align::kRight}, {"reason"}});
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (b.verdict == BenchVerdict::kSame && !all) continue;
    const bool fails = b.severity == Severity::kFailure;
    table.add_row(
        {Cell(fmt::format("{}{}", to_string(b.verdict), fails ? ", fails" : ""), style_of(b)),
         b.name, b.component, change_in_words(b), b.reason});
  }
  return table;
}

void print_text(const BenchComparison& comparison, bool all, Context& context) {
  const bool markdown = context.format == Format::kMarkdown;
  const Table table = table_of(comparison, all);
  if (context.format == Format::kCsv) {
    context.out << table.csv();
    return;
  }
  context.out << (markdown ? "**" : "") << comparison_summary(comparison) << (markdown ? "**" : "")
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
  context.out << (lines > 0 ? "\n" : "") << "stack: " << stack_changes(comparison) << '\n';
  if (!table.empty()) context.out << '\n' << rendered(table, context);
}

void print_jobs(const std::vector<JobVerdictChange>& jobs, Context& context) {
  Table table({{"job"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"available", Align::kRight},
               {"verdict"}});
  for (const JobVerdictChange& job : jobs) {
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
      std::count_if(jobs.begin(), jobs.end(), [](const JobVerdictChange& j) { return j.flips(); });
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

json jobs_json(const std::vector<JobVerdictChange>& jobs) {
  json all = json::array();
  for (const JobVerdictChange& job : jobs) {
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

void print_json(const BenchComparison& comparison, const std::vector<JobVerdictChange>& jobs,
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

RequestedComparison requested_comparison(const char* command, const Arguments& arguments,
                                         const Context& context) {
  RequestedComparison asked;
  std::optional<std::string> fail_threshold;
  std::string jobs_folder, calibration_before, calibration_after;
  bool strict = false;
  CompareOptions options;
  OptionParser parser(command);
  parser.positional("BASE", asked.base);
  parser.positional("NEW", asked.now);
  parser.option("--fail-threshold", fail_threshold);
  parser.flag("--fail-on-time", options.time_fails);
  parser.option("--jobs", jobs_folder);
  parser.option("--before", calibration_before);
  parser.option("--after", calibration_after);
  parser.flag("--all", asked.all);
  parser.flag("--strict", strict);
  parser.parse(arguments);
  if (fail_threshold) read_fail_threshold(*fail_threshold, options);
  if (!jobs_folder.empty() && (calibration_before.empty() || calibration_after.empty())) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: --jobs needs the calibrations --before and --after; `memfathom "
                            "calibrations list` shows them",
                            command));
  }
  asked.base_file = bench_file_named(asked.base, context);
  asked.now_file = bench_file_named(asked.now, context);
  asked.comparison = compare(asked.base_file, asked.now_file, options);
  if (!jobs_folder.empty())
    asked.jobs = compare_job_verdicts(jobs_folder, calibration_before, calibration_after, context);
  const bool flipped = std::any_of(asked.jobs.begin(), asked.jobs.end(),
                                   [](const JobVerdictChange& j) { return j.flips(); });
  if (asked.comparison.verdict() == "worse" || flipped) {
    asked.exit_code = ExitCode::kNo;
  } else if (strict && asked.comparison.verdict() == "undecided") {
    asked.exit_code = ExitCode::kUndecided;
  }
  return asked;
}

ExitCode bench_compare(const Arguments& arguments, Context& context) {
  const RequestedComparison asked = requested_comparison("bench compare", arguments, context);
  if (context.format == Format::kJson) {
    print_json(asked.comparison, asked.jobs, context);
  } else {
    print_text(asked.comparison, asked.all, context);
    if (!asked.jobs.empty() && context.format != Format::kCsv) print_jobs(asked.jobs, context);
  }
  return asked.exit_code;
}

}  // namespace memfathom
