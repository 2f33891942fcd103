#include "profiler/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/file_descriptor.h"

namespace memfathom {
namespace {

// In the child: only async-signal-safe calls, since other threads may have held locks at fork().
[[noreturn]] void become(char* const* words, const ChildOptions& options, pid_t parent,
                         int failures) {
  prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (getppid() != parent) _exit(127);  // the parent ended before prctl()
  if (options.own_group) setpgid(0, 0);
  signal(SIGXFSZ, SIG_DFL);  // ignored signals stay so in other programs, which expect none
  for (int i = 0; i < 3; ++i) {
    const int descriptor = options.descriptors[static_cast<std::size_t>(i)];
    if (descriptor >= 0) dup2(descriptor, i);
  }
  if (options.mask != nullptr) sigprocmask(SIG_SETMASK, options.mask, nullptr);
  execvpe(words[0], words, options.environment != nullptr ? options.environment : environ);
  const int failure = errno;
  [[maybe_unused]] const ssize_t told = write(failures, &failure, sizeof failure);
  _exit(127);
}

}  // namespace

// posix_spawn() cannot set the signal of the parent's death.
int start_child(std::vector<std::string> words, const ChildOptions& options, pid_t& child) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  const FileDescriptor told(ends[0]);
  FileDescriptor failures(ends[1]);
  const pid_t parent = getpid();
  const pid_t started = fork();
  if (started < 0) return errno;
  if (started == 0) become(arguments.data(), options, parent, failures.get());
  failures.reset();
  if (options.own_group) setpgid(started, started);  // whoever comes first
  int failure = 0;
  ssize_t got = 0;
  while ((got = read(told.get(), &failure, sizeof failure)) < 0 && errno == EINTR) continue;
  if (got == static_cast<ssize_t>(sizeof failure)) {  // exec closes the pipe without a word
    while (waitpid(started, nullptr, 0) < 0 && errno == EINTR) continue;
    return failure;
  }
  child = started;
  return 0;
}

}  // namespace memfathom
