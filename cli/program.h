// The program behind main: words in, exit code out. Knows the table of commands and nothing about
// any of them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace memfathom {

// Prints errors to `err` and never throws. `colour` says whether `out` is a terminal that wants
// colours.
ExitCode run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err,
                     bool colour);

}  // namespace memfathom
