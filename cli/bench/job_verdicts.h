// Which saved jobs fitted with one calibration and do not with another.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

struct JobVerdictChange {
  std::string file;
  Bytes before;  // the device peak with the calibration before
  Bytes after;
  Bytes available;  // 0: the job names no GPU
  VerdictStatus status_before = VerdictStatus::kUnknown;
  VerdictStatus status_after = VerdictStatus::kUnknown;
  std::string error;  // why there is no answer

  bool flips() const {
    return status_before != VerdictStatus::kDoesNotFit &&
           status_after == VerdictStatus::kDoesNotFit;
  }
};

// Every *.yaml, *.yml and *.json of a folder, by name. A job that cannot be answered is an entry
// with its error; a folder without jobs and an unknown calibration are Error(kInput).
std::vector<JobVerdictChange> compare_job_verdicts(const std::string& folder,
                                                   const std::string& before,
                                                   const std::string& after,
                                                   const Context& context);

}  // namespace memfathom
