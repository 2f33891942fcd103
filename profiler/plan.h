// Plan: the workloads to measure, their sizes, repeats and time limits.
//
// The tables (plan_tables.cc) define the models. Sizes are chosen so that each job's forecast is
// close to a fixed target, the same on every machine, so that an interrupted run can be resumed.
// Every model is measured at several sizes; some are kept for validation and never fitted.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "profiler/job_runner.h"
#include "profiler/probe_target.h"

namespace memfathom {

struct Workload {
  std::string name;    // "mlp/w1024-d4/fp32/96MiB"
  std::string family;  // held out as a whole when a fit is validated
  std::string job;     // JSON
  bool validation = false;
  Forecast forecast;
};

struct SkippedWorkload {
  std::string name;
  std::string why;
};

struct Plan {
  std::string name;
  std::vector<Workload> workloads;
  std::vector<SkippedWorkload> left_out;
  double budget_seconds =
      60;  // repeats stop when it is spent; every workload is measured at least once
  std::chrono::seconds limit{60};  // of one probe
  int max_repeats = 3;
  double small_spread = 0.005;  // relative half-range at which repeating stops
};

// The framework that runs the jobs: our own layers, or the user's PyTorch.
enum class Framework { kOwn, kPytorch };

// "quick", "standard" or "full"; throws Error(kUsage) for another name. Leaves out jobs that would
// reserve more than `ceiling` and jobs that the framework's probe or the GPU cannot run. The
// capability is 80 for sm_80, and 0 if unknown.
Plan make_plan(std::string_view name, DeviceKind kind, Bytes ceiling, const JobRunner& runner,
               Framework framework = Framework::kOwn, int compute_capability = 0);

// How well the fitted workloads of a plan separate the constants: the condition number of the
// matrix whose columns are the constant and the libraries, each scaled to length 1. 1 is ideal;
// infinite if one of them cannot be determined.
double design_condition(const std::vector<Workload>& workloads);

}  // namespace memfathom
