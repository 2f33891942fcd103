// InterruptGuard: while alive, turns Ctrl-C into a stop request instead of terminating the process.
#pragma once

#include <atomic>
#include <csignal>

namespace memfathom {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();  // a second Ctrl-C terminates the program as usual
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& asked() const;

 private:
  struct sigaction before_ {};
};

}  // namespace memfathom
