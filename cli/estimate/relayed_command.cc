#include "cli/estimate/relayed_command.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "profiler/child_process.h"

namespace memfathom {
namespace {

std::atomic<pid_t> receiver{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

// The terminal sends its signals to the command as well; passed on, they would arrive twice.
void pass_on(int signal, siginfo_t* info, void*) {
  const pid_t child = receiver;
  if (child <= 0 || info->si_code == SI_KERNEL) return;
  const int before = errno;
  kill(child, signal);
  errno = before;
}

}  // namespace

RelayedCommand::RelayedCommand(const std::vector<std::string>& words, int output) {
  sigset_t relayed;
  sigset_t mask;
  sigemptyset(&relayed);
  for (const int signal : kSignals) sigaddset(&relayed, signal);
  // A signal that comes before there is a receiver waits for it.
  pthread_sigmask(SIG_BLOCK, &relayed, &mask);
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // What is ignored stays ignored, as nohup wants it.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
  ChildOptions options;
  options.death_signal = SIGTERM;  // it may have a checkpoint to write
  options.mask = &mask;
  options.descriptors[1] = output;
  const int failure = start_child(words, options, child_);
  if (failure != 0) restore();
  receiver = child_;
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (failure == 0) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} cannot be run: {}; is it installed and in PATH?", words.front(),
                          std::strerror(failure)));
}

RelayedCommand::~RelayedCommand() {
  receiver = 0;
  restore();
}

void RelayedCommand::restore() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool RelayedCommand::has_ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child_;
}

int RelayedCommand::wait() {
  siginfo_t info{};
  // The number stays the command's until it is collected: no signal may go to it after that.
  while (waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
    continue;
  receiver = 0;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace memfathom
