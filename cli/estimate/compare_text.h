// A comparison of strategies as a table or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/bytes.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

struct ComparedTarget {
  std::string name;  // "rtx-4090", "24GiB"
  Bytes device_peak;
  Verdict verdict;
};

struct ComparedStrategy {
  std::string name;
  std::vector<std::string> grid;  // the alternatives that were chosen, one for each dimension
  Estimate estimate;
  double saved = 0;  // of the baseline's device peak; negative: it takes more
  std::vector<ComparedTarget> targets;
};

struct StrategyComparison {
  std::vector<std::string> columns;    // of a grid; empty: strategies by name
  std::vector<ComparedStrategy> rows;  // the baseline first, unless they were sorted
  std::string baseline;
};

std::string comparison_text(const StrategyComparison& comparison, const Context& context);
std::string comparison_json(const StrategyComparison& comparison);

}  // namespace memfathom
