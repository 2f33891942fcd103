#include "cli/interrupt.h"

#include <cstddef>

namespace memfathom {
namespace {

// Global because a signal handler has no other way to report.
std::atomic<bool> interrupted{false};
std::atomic<bool> terminated{false};
std::atomic<int> last_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note_interrupt(int signal) {
  last_signal = signal;
  if (signal != SIGINT) terminated = true;
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
  terminated = false;
  last_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // What is ignored stays ignored, as nohup wants it.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& InterruptGuard::asked() const { return interrupted; }
const std::atomic<bool>& InterruptGuard::asked_now() const { return terminated; }
int InterruptGuard::signal() const { return last_signal; }

}  // namespace memfathom
