// Batch estimates: one job a line in, one answer a line out, in order, on all cores.
#pragma once

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
};

// Exit code kUsage when a line could not be answered; the others are answered all the same. With
// strict, else kUndecided when one of them is. Whether jobs fit stands in their lines.
ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& options,
                        const Estimator& estimator, Context& context);

}  // namespace memfathom
