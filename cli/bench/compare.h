// A comparison of two bench files, as requested on the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/job_verdicts.h"
#include "cli/command.h"
#include "profiler/regression/compare.h"

namespace memfathom {

struct RequestedComparison {
  std::string base, now;  // as they were named
  BenchFile base_file, now_file;
  BenchComparison comparison;
  std::vector<JobVerdictChange> jobs;  // of --jobs
  bool all = false;                    // include unchanged ones
  ExitCode exit_code = ExitCode::kYes;
};

// Reads --fail-threshold: "5%", "256MiB" or both, separated by a comma; an unset limit never fails.
// Throws Error(kUsage).
void read_fail_threshold(const std::string& text, CompareOptions& options);

// Parses the arguments of `bench compare` and compares. Throws Error(kUsage), naming `command`, and
// Error(kInput).
RequestedComparison requested_comparison(const char* command, const Arguments& arguments,
                                         const Context& context);

}  // namespace memfathom
