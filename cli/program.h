// The program behind main: takes arguments, returns an exit code. It depends on the command table
// only.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/language/language.h"

namespace memfathom {

// What the streams of run_program lead to; none of them a terminal unless said.
struct Terminal {
  bool colour = false;                     // of `out`
  std::size_t columns = 0;                 // of `out`; 0: no terminal
  std::size_t error_columns = 0;           // of `err`
  Language language = Language::kEnglish;  // of the environment; --lang decides before it
};

// Prints errors to `err` and never throws.
ExitCode run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err,
                     const Terminal& terminal);

}  // namespace memfathom
