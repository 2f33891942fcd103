// Batch estimates: one job a line in, one answer a line out, in order, on all cores.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "cli/command.h"
#include "cli/estimate/estimation.h"
#include "cli/estimate/job_source.h"

namespace memfathom {

struct BatchOptions {
  std::function<JobInput(Node)> read;  // a line's job; called from several threads
  bool explains = false;
  bool strict = false;
};

// Exit code kUsage when a line could not be answered; the others are answered all the same. With
// strict, else kUndecided when one of them is. Whether jobs fit stands in their lines.
ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& question,
                        const Estimation& estimation, Context& context);

}  // namespace memfathom
