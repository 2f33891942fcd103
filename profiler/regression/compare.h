// compare: compares two bench files: what changed, by how much, and the likely cause.
//
// Memory is nearly deterministic and comes in pages: it has changed if the median moved by more
// than a quantum and a share of itself, and most processes on either side agree. Times are noisy:
// they have changed if a rank test is significant after Holm's correction and the shift is large
// enough to matter. Memory that the process takes before the job (context, libraries' modules) is
// compared once, in the benchmarks named "startup/...", and subtracted from every other device
// peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "profiler/regression/bench_file.h"

namespace memfathom {

struct CompareOptions {
  Bytes quantum{2 << 20};
  double share = 0.005;
  // A benchmark that is worse fails at either of the first two limits, and warns at the third.
  double fail_share = 0.05;
  Bytes fail_bytes{256 << 20};
  double warn_share = 0.01;
  double time_alpha = 0.05;
  double time_share = 0.05;  // the smallest relevant shift of the median
  bool time_fails = false;   // false: slower is only a warning
};

enum class BenchVerdict { kSame, kBetter, kWorse, kAmbiguous, kMissing, kNew };
enum class Severity { kNone, kWarning, kFailure };

template <>
inline constexpr auto kEnumNames<BenchVerdict> =
    std::to_array<EnumName<BenchVerdict>>({{BenchVerdict::kSame, "same"},
                                           {BenchVerdict::kBetter, "better"},
                                           {BenchVerdict::kWorse, "worse"},
                                           {BenchVerdict::kAmbiguous, "ambiguous"},
                                           {BenchVerdict::kMissing, "missing"},
                                           {BenchVerdict::kNew, "new"}});
template <>
inline constexpr auto kEnumNames<Severity> = std::to_array<EnumName<Severity>>(
    {{Severity::kNone, "none"}, {Severity::kWarning, "warning"}, {Severity::kFailure, "failure"}});

struct StackChange {
  std::string key;   // "cudnn"
  std::string name;  // "cuDNN"
  std::string before;
  std::string after;
};

struct ComparedBenchmark {
  std::string name;
  std::string label;  // readable; the name if there is none
  BenchVerdict verdict = BenchVerdict::kSame;
  Severity severity = Severity::kNone;
  std::string reason;
  // The largest change; without a change, the largest figure.
  std::string component;  // the contract's name, "time", or empty
  std::string what;       // "cuDNN workspace, data gradient 7x7/s2 ..."
  std::optional<Bytes> before;
  std::optional<Bytes> after;
  std::optional<double> seconds_before;
  std::optional<double> seconds_after;
  std::string blamed;  // "cuDNN 9.19.0 → 9.22.0"; empty unless it changed
};

struct BenchComparison {
  std::vector<StackChange> stack;
  // The worst first (operations by the total growth of their variants), then in file order.
  std::vector<ComparedBenchmark> benchmarks;

  int count(BenchVerdict verdict) const;
  int count(Severity severity) const;
  // "worse" if a benchmark fails, "undecided" if none fails but some are uncertain, else "same" or
  // "better".
  std::string_view verdict() const;
};

// Throws Error(kInput) if the files are from different devices: a baseline belongs to one device.
BenchComparison compare(const BenchFile& base, const BenchFile& now,
                        const CompareOptions& options = {});

std::string_view to_string(BenchVerdict verdict);
std::string_view to_string(Severity severity);  // "none", "warning", "failure"

// "24.7 → 62.2 MiB": both in the unit of the larger.
std::string change_text(Bytes before, Bytes after);

}  // namespace memfathom
