// run_captured: runs a program without a shell and returns what it printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace memfathom {

struct CommandOutput {
  int exit_code = 0;  // 128 and the number of the signal that ended it, as shells have it
  std::string out;
  std::string err;
};

// Searches words[0] in PATH. Throws Error(kEnvironment) if it cannot be started, prints more than
// 64 MiB or does not end within `limit`; it is then killed.
CommandOutput run_captured(const std::vector<std::string>& words, std::chrono::milliseconds limit);

}  // namespace memfathom
