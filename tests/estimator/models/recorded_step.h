// A step recorded from PyTorch: the job that asks for the same, and how near the answer must be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

// Two samples, forward and backward without an optimizer; `training` holds the other keys.
inline std::string recorded_job_of(const std::string& model, const std::string& training) {
  return R"({"model": )" + model +
         R"(, "training": {"mode": "train", "batch_size": 2, "optimizer": "none", )" + training +
         R"(}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})";
}

inline std::string recorded_job(const std::string& config, const std::string& training) {
  return recorded_job_of(R"({"config": )" + config + "}", training);
}

inline DryRun run_recorded(const std::string& job) {
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  return run_dry(read_job(parse_json(job, "job.json")), options);
}

inline std::int64_t peak_of(const DryRun& done, const std::string& phase) {
  std::int64_t peak = 0;
  for (const PhaseRecord& record : done.phases) {
    if (record.iteration == 2 && record.name == phase) peak = std::max(peak, record.allocated_peak);
  }
  return peak;
}

inline void expect_recorded(std::int64_t got, std::int64_t wanted, const std::string& what) {
  EXPECT_LE(std::abs(static_cast<double>(got - wanted)), 0.01 * static_cast<double>(wanted))
      << what << ": " << got << " instead of " << wanted;
}

}  // namespace memfathom
