// A comparison of two bench files as the command line asks for it.
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
  bool all = false;                    // those that did not change too
  ExitCode exit_code = ExitCode::kYes;
};

// The arguments and options of `bench compare`, and what they lead to. Throws Error(kUsage) in the
// name of `command`, and Error(kInput).
RequestedComparison requested_comparison(const char* command, const Arguments& arguments,
                                         const Context& context);

}  // namespace memfathom
