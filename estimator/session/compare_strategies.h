// Strategies of a job side by side: each estimated on the job's own target and on others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/patch.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct NamedPatch {
  std::string name;
  Patch patch;
  std::vector<std::string> grid;  // the alternatives, one for each dimension of a grid
};

struct CompareRequest {
  // "checkpointing+adamw-8bit"; absent: those usual for the job.
  std::optional<std::vector<std::string>> strategies;
  std::vector<NamedPatch> patches;   // compared in addition to the strategies
  std::vector<std::string> grid;     // "batch=4,2,1"; excludes strategies and patches
  std::vector<std::string> targets;  // "rtx-4090", "24GiB", "24"
  bool ranked = false;               // the largest saving first
};

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
  // One sentence for each strategy that the job's own rules refuse.
  std::vector<std::string> skipped;
};

// Throws Error(kInput) if the baseline itself cannot be estimated.
StrategyComparison compare_strategies(const JobInput& input, const CompareRequest& request,
                                      const Estimator& estimator);

}  // namespace memfathom
