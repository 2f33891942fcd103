// The cases of the device suite, and a probe's answer as a row of counters: for `bench run` and for
// the Google Benchmark program.
#pragma once

#include <string>
#include <vector>

#include "profiler/probe_process.h"
#include "profiler/regression/bench_file.h"

namespace memfathom {

// A benchmark of a device: a job, or what the process takes before one.
struct DeviceCase {
  std::string name;
  std::string label;
  std::string job;
  std::string startup;  // the counter that is kept; empty for a job
  LibraryUse uses;
};

// What a process takes before its job, then every layer in every type that suits the scale: tiny,
// small, full, or empty for what suits the device.
std::vector<DeviceCase> device_cases(const std::string& device, const std::string& scale);

// One probe's answer as a row. `startup` keeps that counter only ("context_bytes").
BenchRow row_of(const ProbeOutcome& outcome, const std::string& startup);

}  // namespace memfathom
