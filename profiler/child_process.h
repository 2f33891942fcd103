// child_process: starts a program that does not outlive this one.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace memfathom {

struct ChildOptions {
  std::array<int, 3> descriptors{-1, -1, -1};  // its standard streams; -1: those of this process
  bool own_group = false;      // signals of the terminal do not reach a process group of its own
  int death_signal = SIGKILL;  // sent to the child when the thread that started it ends
  char* const* environment = nullptr;  // ends with a null pointer; nullptr: that of this process
  const sigset_t* mask = nullptr;      // its signal mask; nullptr: that of this thread
};

// Starts words[0], searched in PATH. Returns 0 and sets `child`, or returns the errno of what
// failed, exec included.
int start_child(std::vector<std::string> words, const ChildOptions& options, pid_t& child);

}  // namespace memfathom
