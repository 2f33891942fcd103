#include "cli/bench/compare_text.h"

#include <fmt/format.h>

namespace memfathom {
namespace {

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

}  // namespace

std::string change_in_words(const ComparedBenchmark& b) {
  if (b.component == "time")
    return fmt::format("{} → {}", seconds_text(*b.seconds_before), seconds_text(*b.seconds_after));
  return b.before && b.after ? change_text(*b.before, *b.after) : "";
}

std::string headline(const ComparedBenchmark& b) {
  const bool names_the_operation = b.what.find(b.label) != std::string::npos;
  return fmt::format("{}{}: {}; {}", b.what, names_the_operation ? "" : ", " + b.label,
                     change_in_words(b), b.blamed);
}

std::string comparison_summary(const BenchComparison& comparison) {
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
      text += fmt::format(" ({} failing, {} warnings)", comparison.count(Severity::kFailure),
                          comparison.count(Severity::kWarning));
    }
    before = ", ";
  }
  return text;
}

std::string stack_changes(const BenchComparison& comparison) {
  if (comparison.stack.empty()) return "the same driver, libraries and framework";
  std::string text;
  for (const StackChange& change : comparison.stack) {
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", change.name, change.before,
                        change.after);
  }
  return text;
}

}  // namespace memfathom
