// Job verdicts: saved jobs that fit with one calibration but not with another.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

struct JobVerdictChange {
  std::string file;
  Bytes before;  // the device peak with the old calibration
  Bytes after;
  Bytes available;  // 0: the job names no GPU
  VerdictStatus status_before = VerdictStatus::kUnknown;
  VerdictStatus status_after = VerdictStatus::kUnknown;
  std::string error;  // why the estimate failed

  bool flips() const {
    return status_before != VerdictStatus::kDoesNotFit &&
           status_after == VerdictStatus::kDoesNotFit;
  }
};

// Every *.yaml, *.yml and *.json file of a folder, by name. A failed job is an entry with its
// error. Throws Error(kInput) for a folder without jobs or an unknown calibration.
std::vector<JobVerdictChange> compare_job_verdicts(const std::string& folder,
                                                   const std::string& before,
                                                   const std::string& after,
                                                   const Context& context);

}  // namespace memfathom
