// RelayedCommand: a command that is run in place of this program: signals sent to this process are
// passed on to it, and it does not outlive this process.
//
// One at a time, on the main thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace memfathom {

class RelayedCommand {
 public:
  // Starts words[0], searched in PATH; throws Error(kEnvironment) if it cannot be run.
  // Its standard output is `output`, or this process's if it is -1.
  explicit RelayedCommand(const std::vector<std::string>& words, int output = -1);
  ~RelayedCommand();  // signals have their former meaning again
  RelayedCommand(const RelayedCommand&) = delete;
  RelayedCommand& operator=(const RelayedCommand&) = delete;

  pid_t pid() const { return child_; }
  bool has_ended() const;  // at once
  // Waits for the end: its exit code; 128 and the number of the signal that ended it, as shells
  // have it.
  int wait();

 private:
  static constexpr std::array<int, 6> kSignals{SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
  void restore();

  pid_t child_ = -1;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace memfathom
