// Batch estimates: one job a line in, one answer a line out, in order, on all cores.
#pragma once

#include <iosfwd>
#include <string>

#include "cli/command.h"
#include "cli/estimate/estimation.h"

namespace memfathom {

// Exit code kUsage when a line could not be answered; the others are answered all the same.
ExitCode estimate_batch(std::istream& input, const std::string& name, const Estimation& estimation,
                        Context& context);

}  // namespace memfathom
