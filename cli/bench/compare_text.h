// Bench comparison in words: what `bench compare` prints and `report bench` draws.
#pragma once

#include <string>

#include "profiler/regression/compare.h"

namespace memfathom {

// "24.7 → 62.2 MiB", "1.2 ms → 1.9 ms"; empty where only one side is known.
std::string change_in_words(const ComparedBenchmark& benchmark);
// The line a person is to read: what, how much, and which version is to be blamed.
std::string headline(const ComparedBenchmark& benchmark);
std::string comparison_summary(const BenchComparison& comparison);
std::string stack_changes(const BenchComparison& comparison);  // "cuDNN 9.19.0 → 9.22.0"

}  // namespace memfathom
