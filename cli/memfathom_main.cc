#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "core/table.h"
#include "memfathom/memfathom.h"

extern "C" int memfathom_main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const memfathom::ExitCode code =
      memfathom::run_program(words, std::cout, std::cerr, memfathom::wants_colour(STDOUT_FILENO));
  return static_cast<int>(code);
}
