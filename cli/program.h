// The program behind main: takes arguments, returns an exit code. It depends on the command table
// only.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace memfathom {

// Prints errors to `err` and never throws. `colour`: whether `out` is a terminal that supports
// colour.
ExitCode run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err,
                     bool colour);

}  // namespace memfathom
