#include "profiler/regression/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "core/error.h"
#include "core/quantile.h"
#include "profiler/regression/changes.h"
#include "profiler/regression/rank_test.h"

namespace memfathom {
namespace {

constexpr std::size_t kMinSamplesForTimeTest =
    5;  // with fewer, no arrangement of ranks is significant

using Group = std::vector<const BenchRow*>;  // the repetitions of one benchmark

// In the order in which the names first appear.
std::vector<std::pair<std::string, Group>> grouped(const BenchFile& file) {
  std::vector<std::pair<std::string, Group>> groups;
  std::map<std::string, std::size_t> places;
  for (const BenchRow& row : file.rows) {
    const auto [place, added] = places.emplace(row.name, groups.size());
    if (added) groups.emplace_back(row.name, Group{});
    groups[place->second].second.push_back(&row);
  }
  return groups;
}

// Why a benchmark has no values; empty if any repetition has.
std::string failure_of(const Group& group) {
  for (const BenchRow* row : group) {
    if (row->error.empty()) return {};
  }
  return group.front()->error;
}

std::vector<double> times_of(const Group& group) {
  std::vector<double> times;
  for (const BenchRow* row : group) {
    const bool is_judged = row->time_of.empty() || row->time_of == "step";
    if (row->error.empty() && is_judged && row->seconds > 0) times.push_back(row->seconds);
  }
  return times;
}

Severity severity_of(Bytes before, Bytes after, const CompareOptions& options) {
  const Bytes more = after - before;
  const auto share = static_cast<double>(more.count());
  const auto whole = static_cast<double>(before.count());
  if (more >= options.fail_bytes || share >= options.fail_share * whole) return Severity::kFailure;
  return share >= options.warn_share * whole ? Severity::kWarning : Severity::kNone;
}

std::string percent_text(Bytes before, Bytes after) {
  // A percentage of a tiny value is meaningless.
  if (before < Bytes{1 << 20}) return fmt::format("from {}", to_string(before));
  const double share =
      static_cast<double>((after - before).count()) / static_cast<double>(before.count());
  return fmt::format("{:+.1f} %", 100 * share);
}

// The changed versions that can affect a component, most likely first.
std::string blamed_on(std::string_view component, const std::vector<StackChange>& stack) {
  if (stack.empty()) return "no version changed: look at the program and the machine";
  const auto said = [](const StackChange& change) {
    return fmt::format("{} {} → {}", change.name, change.before, change.after);
  };
  for (const std::string_view key : likely_causes(component)) {
    const auto found = std::find_if(stack.begin(), stack.end(),
                                    [&](const StackChange& c) { return c.key == key; });
    if (found != stack.end()) return said(*found);
  }
  std::string text;
  for (const StackChange& change : stack) text += (text.empty() ? "" : ", ") + said(change);
  return text;
}

ComparedBenchmark judged_memory(const Group& before, const Group& after, bool is_startup,
                                bool startup_is_apart, const std::vector<StackChange>& stack,
                                const CompareOptions& options) {
  ComparedBenchmark result;
  const std::vector<Figure> figures = figures_of(before, after, is_startup || !startup_is_apart);
  const Figure* worst = nullptr;      // of those that changed
  const Figure* uncertain = nullptr;  // of those that may have changed
  for (const Figure& figure : figures) {
    const FigureChange change = change_of(figure, options);
    if (change.kind == FigureChange::kMaybe && uncertain == nullptr) uncertain = &figure;
    if (change.kind != FigureChange::kYes) continue;
    // Figures are ordered from the most to the least inclusive. One that grew is reported even if a
    // more inclusive one shrank: that may be chance in how blocks fit.
    const bool grew = figure.after > figure.before;
    if (grew)
      result.severity =
          std::max(result.severity, severity_of(figure.before, figure.after, options));
    if (worst == nullptr || (grew && worst->after < worst->before)) worst = &figure;
  }
  if (worst == nullptr && uncertain == nullptr) {
    result.reason = figures.empty() ? std::string("no memory was measured")
                                    : fmt::format("no figure moved by more than {} and {:g} %",
                                                  to_string(options.quantum), 100 * options.share);
    if (!figures.empty()) {
      if (after.front()->operations.size() == 1)
        result.component = after.front()->operations.front().component;
      result.before = figures.front().before;
      result.after = figures.front().after;
    }
    return result;
  }
  if (worst == nullptr) {
    const FigureChange change = change_of(*uncertain, options);
    result.verdict = BenchVerdict::kAmbiguous;
    result.component = uncertain->component;
    result.what = uncertain->words;
    result.before = uncertain->before;
    result.after = uncertain->after;
    result.reason =
        fmt::format("{} differs in {} of {} processes only; run both again with --repetitions 9",
                    uncertain->words, change.agreeing, change.processes);
    return result;
  }
  const bool is_more = worst->after > worst->before;
  result.verdict = is_more ? BenchVerdict::kWorse : BenchVerdict::kBetter;
  if (!is_more) result.severity = Severity::kNone;
  const Figure cause = cause_of(before, after, *worst, options);
  const FigureChange change = change_of(*worst, options);
  result.component = cause.component;
  result.what = cause.words;
  result.before = cause.before;
  result.after = cause.after;
  result.blamed = blamed_on(cause.component, stack);
  if (const std::string other = cause.also.empty() ? "" : blamed_on(cause.also, stack);
      !other.empty() && other != result.blamed)
    result.blamed += ", " + other;
  result.reason = fmt::format(
      "{} {} ({}) in {} of {} processes", worst->words, change_text(worst->before, worst->after),
      percent_text(worst->before, worst->after), change.agreeing, change.processes);
  return result;
}

struct TimeQuestion {
  std::size_t benchmark;  // its index in the results
  RankTest test;
  double before;
  double after;
};

void judge_times(const std::vector<TimeQuestion>& questions, const CompareOptions& options,
                 const std::vector<StackChange>& stack, std::vector<ComparedBenchmark>& results) {
  std::vector<double> p_values;
  for (const TimeQuestion& question : questions) p_values.push_back(question.test.p);
  const std::vector<double> corrected = holm(p_values);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const TimeQuestion& question = questions[i];
    ComparedBenchmark& result = results[question.benchmark];
    result.seconds_before = question.before;
    result.seconds_after = question.after;
    const double shift = question.after / question.before - 1;
    if (corrected[i] >= options.time_alpha || std::abs(shift) < options.time_share) continue;
    // Memory takes precedence: time decides only if memory did not change.
    if (result.verdict != BenchVerdict::kSame) continue;
    result.verdict = shift > 0 ? BenchVerdict::kWorse : BenchVerdict::kBetter;
    if (shift > 0) result.severity = options.time_fails ? Severity::kFailure : Severity::kWarning;
    result.component = "time";
    result.what = "time of " + result.label;
    result.blamed = blamed_on("time", stack);
    result.reason = fmt::format("time {:+.1f} % (p {:.2g} among {} tests, effect {:+.2f})",
                                100 * shift, corrected[i], questions.size(), question.test.effect);
  }
}

ComparedBenchmark one_sided(const std::string& name, const Group& group, BenchVerdict verdict,
                            std::string reason) {
  ComparedBenchmark result;
  result.name = name;
  result.label = group.front()->label.empty() ? name : group.front()->label;
  result.verdict = verdict;
  result.reason = std::move(reason);
  return result;
}

// 0 is listed first.
int place_of(const ComparedBenchmark& result) {
  if (result.severity == Severity::kFailure) return 0;
  if (result.severity == Severity::kWarning) return 1;
  switch (result.verdict) {
    case BenchVerdict::kWorse: return 2;
    case BenchVerdict::kAmbiguous: return 3;
    case BenchVerdict::kMissing: return 4;
    case BenchVerdict::kNew: return 5;
    case BenchVerdict::kBetter: return 6;
    case BenchVerdict::kSame: break;
  }
  return 7;
}

// "conv/3x3-64-64-56-b32/forward/fp16/nhwc" without type and layout: the operation that the
// benchmark is a variant of.
std::string_view operation_in(std::string_view name) {
  constexpr std::array<std::string_view, 5> kVariants{"/fp32", "/fp16", "/bf16", "/nhwc", "/nchw"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view variant : kVariants) {
      if (!name.ends_with(variant)) continue;
      name.remove_suffix(variant.size());
      found = true;
    }
  }
  return name;
}

double growth_of(const ComparedBenchmark& result) {
  if (!result.before || !result.after) return 0;
  return static_cast<double>((*result.after - *result.before).count());
}

// The worst first. An operation is ranked by the sum over its variants: a library that swapped
// plans between two layouts is listed after one that grew in total.
void sort_by_importance(std::vector<ComparedBenchmark>& benchmarks) {
  std::map<std::string, double, std::less<>> balance;
  for (const ComparedBenchmark& b : benchmarks)
    balance[std::string(operation_in(b.name))] += growth_of(b);
  const auto rank = [&](const ComparedBenchmark& b) {
    const bool is_worse = b.verdict == BenchVerdict::kWorse;
    const std::string_view operation = operation_in(b.name);
    return std::tuple(place_of(b), is_worse ? -balance.find(operation)->second : 0.0,
                      is_worse ? operation : std::string_view(), is_worse ? -growth_of(b) : 0.0);
  };
  std::stable_sort(
      benchmarks.begin(), benchmarks.end(),
      [&](const ComparedBenchmark& a, const ComparedBenchmark& b) { return rank(a) < rank(b); });
}

void check_devices(const BenchFile& base, const BenchFile& now) {
  if (base.environment.gpu.empty() || now.environment.gpu.empty()) return;
  const std::string before = base.environment.device_key();
  const std::string after = now.environment.device_key();
  if (before == after) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format(
          "the files are of different devices ({} and {}); compare only files of the same device",
          before, after));
}

bool has_startup(const BenchFile& file) {
  return std::any_of(file.rows.begin(), file.rows.end(),
                     [](const BenchRow& row) { return row.name.starts_with("startup/"); });
}

}  // namespace

BenchComparison compare(const BenchFile& base, const BenchFile& now,
                        const CompareOptions& options) {
  check_devices(base, now);
  BenchComparison comparison;
  comparison.stack = stack_changes(base.environment, now.environment);
  const bool startup_is_apart = has_startup(base) && has_startup(now);

  auto groups = grouped(now);
  std::map<std::string_view, const Group*> after;
  for (const auto& [name, group] : groups) after.emplace(name, &group);
  const auto base_groups = grouped(base);
  std::vector<TimeQuestion> times;
  std::map<std::string_view, bool> in_base;
  for (const auto& [name, before] : base_groups) {
    in_base[name] = true;
    const auto found = after.find(name);
    if (found == after.end()) {
      comparison.benchmarks.push_back(
          one_sided(name, before, BenchVerdict::kMissing, "the new file does not have it"));
      continue;
    }
    const Group& group = *found->second;
    const std::string failed_before = failure_of(before);
    const std::string failed_after = failure_of(group);
    if (!failed_before.empty() && !failed_after.empty()) {
      comparison.benchmarks.push_back(
          one_sided(name, before, BenchVerdict::kSame, "fails in both: " + failed_after));
      continue;
    }
    if (!failed_after.empty()) {
      comparison.benchmarks.push_back(
          one_sided(name, before, BenchVerdict::kMissing, "fails now: " + failed_after));
      continue;
    }
    if (!failed_before.empty()) {
      comparison.benchmarks.push_back(
          one_sided(name, group, BenchVerdict::kNew, "failed before: " + failed_before));
      continue;
    }
    ComparedBenchmark result = judged_memory(before, group, name.starts_with("startup/"),
                                             startup_is_apart, comparison.stack, options);
    result.name = name;
    result.label = group.front()->label.empty() ? name : group.front()->label;
    const std::vector<double> old_times = times_of(before);
    const std::vector<double> new_times = times_of(group);
    if (old_times.size() >= kMinSamplesForTimeTest && new_times.size() >= kMinSamplesForTimeTest) {
      times.push_back({comparison.benchmarks.size(), mann_whitney(old_times, new_times),
                       median(old_times), median(new_times)});
    }
    comparison.benchmarks.push_back(std::move(result));
  }
  for (const auto& [name, group] : groups) {
    if (!in_base.contains(name)) {
      comparison.benchmarks.push_back(
          one_sided(name, group, BenchVerdict::kNew, "the base file does not have it"));
    }
  }
  judge_times(times, options, comparison.stack, comparison.benchmarks);
  sort_by_importance(comparison.benchmarks);
  return comparison;
}

int BenchComparison::count(BenchVerdict verdict) const {
  return static_cast<int>(
      std::count_if(benchmarks.begin(), benchmarks.end(),
                    [&](const ComparedBenchmark& b) { return b.verdict == verdict; }));
}

int BenchComparison::count(Severity severity) const {
  return static_cast<int>(
      std::count_if(benchmarks.begin(), benchmarks.end(),
                    [&](const ComparedBenchmark& b) { return b.severity == severity; }));
}

std::string_view BenchComparison::verdict() const {
  if (count(Severity::kFailure) > 0) return "worse";
  if (count(BenchVerdict::kAmbiguous) + count(BenchVerdict::kMissing) > 0) return "undecided";
  return count(BenchVerdict::kBetter) > 0 && count(BenchVerdict::kWorse) == 0 ? "better" : "same";
}

std::string_view to_string(BenchVerdict verdict) { return enum_name(verdict); }

std::string_view to_string(Severity severity) { return enum_name(severity); }

std::string change_text(Bytes before, Bytes after) {
  const Bytes larger = std::max(before, after);
  if (larger >= Bytes{1 << 20} && before.count() == 0) return "0 → " + to_string(after);
  if (larger >= Bytes{1 << 20} && after.count() == 0) return to_string(before) + " → 0";
  if (larger >= Bytes{1 << 30})
    return fmt::format("{:.2f} → {:.2f} GiB", before.gib(), after.gib());
  if (larger >= Bytes{1 << 20})
    return fmt::format("{:.1f} → {:.1f} MiB", before.mib(), after.mib());
  return fmt::format("{} → {} B", before.count(), after.count());
}

}  // namespace memfathom
