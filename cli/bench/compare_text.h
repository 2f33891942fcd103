// Bench comparisons as text, for `bench compare` and `report bench`.
#pragma once

#include <string>

#include "profiler/regression/compare.h"

namespace memfathom {

// "24.7 → 62.2 MiB", "1.2 ms → 1.9 ms"; empty if only one side is known.
std::string change_in_words(const ComparedBenchmark& benchmark);
// A summary line: what changed, by how much, and which version caused it.
std::string headline(const ComparedBenchmark& benchmark);
std::string comparison_summary(const BenchComparison& comparison);
std::string stack_changes(const BenchComparison& comparison);  // "cuDNN 9.19.0 → 9.22.0"

}  // namespace memfathom
