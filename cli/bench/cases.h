// The cases of the device suite and their rows, for `bench run` and the Google Benchmark program.
#pragma once

#include <string>
#include <vector>

#include "profiler/probe_process.h"
#include "profiler/regression/bench_file.h"

namespace memfathom {

// A device benchmark: a job, or the process's memory before a job.
struct DeviceCase {
  std::string name;
  std::string label;
  std::string job;
  std::string startup;  // the reported counter; empty for a job
  LibraryUse uses;
};

// The process's memory before a job, then every layer in every dtype of the scale: tiny, small,
// full, or empty for the device's default.
std::vector<DeviceCase> device_cases(const std::string& device, const std::string& scale);

// A probe's answer as a row. `startup` selects a single counter ("context_bytes").
BenchRow row_of(const ProbeOutcome& outcome, const std::string& startup);

}  // namespace memfathom
