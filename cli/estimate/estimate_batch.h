// Batch estimates: one job per input line, one answer per output line, in order, on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "cli/command.h"
#include "core/document.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct BatchOptions {
  std::function<JobInput(Node)> read;  // a line's job; called from several threads
  bool explains = false;
  bool strict = false;
  bool slim = false;        // a few keys per line, equal jobs estimated once
  int lines_before = 0;     // of the file, where a part of it is read
  std::int64_t bytes = -1;  // only lines that begin within so many bytes; negative: all
};

// Returns kUsage if a line failed; the others are still answered. With strict, returns kUndecided
// if any answer is undecided. Verdicts are in the output lines.
ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& options,
                        const Estimator& estimator, Context& context);

}  // namespace memfathom
