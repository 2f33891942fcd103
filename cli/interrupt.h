// InterruptGuard: while alive, turns termination signals into stop requests.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace memfathom {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();  // a second signal of the same kind terminates the program as usual
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& asked() const;      // by any of the signals
  const std::atomic<bool>& asked_now() const;  // by one other than Ctrl-C: there is no time left
  int signal() const;                          // the last one, or 0

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace memfathom
