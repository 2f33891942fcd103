#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
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

constexpr std::string_view kOutOfMemory =
    "memfathom: out of host memory; close other programs or reduce the request\n";

// Says so without allocating.
void say_out_of_memory() {
  static_cast<void>(!::write(STDERR_FILENO, kOutOfMemory.data(), kOutOfMemory.size()));
}

std::atomic<bool> memory_failed{false};

// Destructors of the JSON library and of the solver allocate. Where that fails, the standard ends
// the program: then with our sentence and exit code. The store is safe, as after a kill.
void end_where_memory_failed() {
  if (!memory_failed) std::abort();
  say_out_of_memory();
  _exit(static_cast<int>(memfathom::ExitCode::kEnvironment));
}

}  // namespace

extern "C" int memfathom_main(int argc, char** argv) try {
  std::set_new_handler([] {
    memory_failed = true;
    throw std::bad_alloc();
  });
  std::set_terminate(end_where_memory_failed);
  fill_closed_descriptors();
  signal(SIGXFSZ, SIG_IGN);  // a file above `ulimit -f` is then an error with a sentence
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const memfathom::Terminal terminal{.colour = memfathom::wants_colour(STDOUT_FILENO),
                                     .columns = memfathom::terminal_columns(STDOUT_FILENO),
                                     .error_columns = memfathom::terminal_columns(STDERR_FILENO),
                                     .language = memfathom::language_of_environment()};
  const memfathom::ExitCode code = memfathom::run_program(words, std::cout, std::cerr, terminal);
  return static_cast<int>(code);
} catch (const std::bad_alloc&) {  // even a message could not be put together
  say_out_of_memory();
  return static_cast<int>(memfathom::ExitCode::kEnvironment);
}
