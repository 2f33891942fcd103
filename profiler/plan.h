// Plan: which workloads are measured, how large, how often and for how long.
//
// The tables (plan_tables.cc) say which models; sizes are chosen so that each job's forecast comes
// near a stated target, the same on every machine, so that an interrupted run can go on. Every
// model is measured at several sizes, some of which are kept for validation and never fitted.
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
  std::string family;  // left out as a whole when a fit is judged
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
  double budget_seconds = 60;      // repeats stop when it is spent; every workload is measured once
  std::chrono::seconds limit{60};  // of one probe
  int max_repeats = 3;
  double small_spread = 0.005;  // relative half-range at which repeating stops
};

// What runs the jobs: our own layers, or the PyTorch of the user.
enum class Framework { kOwn, kPytorch };

// "quick", "standard", "full". Jobs that would reserve more than `ceiling` are left out, and so are
// those that the framework's probe or the GPU cannot run. The capability is 80 for sm_80, and 0
// where it is not known. Throws Error(kUsage) for another name.
Plan make_plan(std::string_view name, DeviceKind kind, Bytes ceiling, const JobRunner& runner,
               Framework framework = Framework::kOwn, int compute_capability = 0);

// How well the fitted workloads of a plan tell the constants apart: the condition number of the
// matrix whose columns are the constant and the libraries, each scaled to length 1. 1 is perfect;
// infinite when one of them cannot be told at all.
double design_condition(const std::vector<Workload>& workloads);

}  // namespace memfathom
