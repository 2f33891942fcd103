// InterruptGuard: while it stands, Ctrl-C asks for an end instead of making one.
#pragma once

#include <atomic>
#include <csignal>

namespace memfathom {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();  // a second Ctrl-C, and any after it, ends the program as usual
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& asked() const;

 private:
  struct sigaction before_ {};
};

}  // namespace memfathom
