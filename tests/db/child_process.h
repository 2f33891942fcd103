// Child processes for tests: runs a lambda in its own process.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

namespace memfathom {

// Starts `body` (returning an exit code) in a child. The caller owns the process id.
template <typename Body>
pid_t start_child(Body body) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  _exit(code);  // no destructors of the parent's objects, no reports of its tests
}

// The status of a child that ended, as waitpid gives it.
inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The exit code of `body` run in a child; -1 when a signal ended it.
template <typename Body>
int exit_code_of_child(Body body) {
  const int status = wait_for(start_child(body));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Drops root, which ignores file permissions. Call only in a child.
inline void become_unprivileged() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) std::perror("setuid");
}

}  // namespace memfathom
