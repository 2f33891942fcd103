// CalibrationChoice: which calibration an estimate uses, and why.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/calibration.h"
#include "core/calibration_source.h"
#include "core/live_gpu.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"

namespace memfathom {

struct CalibrationChoice {
  std::optional<Calibration> calibration;
  CalibrationStatus status = CalibrationStatus::kNone;
  std::string stale;  // what differs from the job's machine; empty if nothing does
};

// Thread-safe; each choice is made once and kept.
class CalibrationChooser {
 public:
  // `source` must outlive this.
  explicit CalibrationChooser(const CalibrationSource& source) : source_(source) {}

  // target.calibration: "none", "auto" (the newest calibration of the GPU, else a published one of
  // the stack that the job names, else the current stack), an id or a name. `live` names a GPU that
  // the job does not.
  CalibrationChoice choose(const Job& job, const LiveGpu* live) const;
  // Throws the Error(kInput) that a job with this target.calibration would get.
  void require(const std::string& wanted) const;

 private:
  CalibrationChoice best_match(const std::string& gpu, const Job& job, const LiveGpu* live) const;
  CalibrationChoice current_stack(const std::string& framework, const Job& job,
                                  const LiveGpu* live) const;
  CalibrationChoice named(const std::string& wanted) const;

  const CalibrationSource& source_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, CalibrationChoice>
      choices_;  // by target.calibration, GPU and stack
};

// The first difference between a calibration's environment and the job's machine, as a phrase
// ("CUDA was 12.1 and is 12.4"). What is unknown differs from nothing.
std::string stale_reason(const Environment& calibrated, const Job& job, const LiveGpu* live);

}  // namespace memfathom
