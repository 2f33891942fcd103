#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "cli/language/language.h"
#include "cli/program.h"
#include "core/table.h"
#include "core/terminal.h"
#include "memfathom/memfathom.h"

namespace {

// A file that is opened must not become standard input or output by getting the number of a closed
// one. Opened the wrong way round, they still fail as closed ones do.
void fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened > descriptor) close(opened);
  }
}

}  // namespace

extern "C" int memfathom_main(int argc, char** argv) {
  fill_closed_descriptors();
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const memfathom::Terminal terminal{.colour = memfathom::wants_colour(STDOUT_FILENO),
                                     .columns = memfathom::terminal_columns(STDOUT_FILENO),
                                     .error_columns = memfathom::terminal_columns(STDERR_FILENO),
                                     .language = memfathom::language_of_environment()};
  const memfathom::ExitCode code = memfathom::run_program(words, std::cout, std::cerr, terminal);
  return static_cast<int>(code);
}
