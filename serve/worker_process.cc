#include "serve/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "serve/worker.h"

// NOLINTNEXTLINE(readability-redundant-declaration): POSIX names it, no header declares it.
extern char** environ;

namespace memfathom {

WorkerProcess::WorkerProcess(const std::string& database) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(ErrorKind::kEnvironment, "no socket for a worker could be made");
  // dup2 of a descriptor onto itself would keep close-on-exec, so it is moved out of the way first.
  const int theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, kWorkerSocket + 1);
  close(ends[1]);
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kWorkerSocket);
  std::string name = "memfathom-serve", role = "--worker", path = database;
  const std::array<char*, 4> words{name.data(), role.data(), path.data(), nullptr};
  const int failure =
      posix_spawn(&child_, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  if (failure != 0) {
    child_ = -1;
    close(socket_);
    throw Error(ErrorKind::kEnvironment,
                fmt::format("a worker could not be started: {}", std::strerror(failure)));
  }
  constexpr std::chrono::seconds kStart{30};
  if (!receive_frame(socket_, std::chrono::steady_clock::now() + kStart))
    throw Error(ErrorKind::kEnvironment, "a worker ended before it was ready");
}

WorkerProcess::~WorkerProcess() {
  if (socket_ >= 0) close(socket_);
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

std::optional<WorkerAnswer> WorkerProcess::ask(const std::string& method, const std::string& text,
                                               Deadline deadline) {
  if (!send_frame(socket_, method, text)) return std::nullopt;
  std::optional<Frame> frame = receive_frame(socket_, deadline);
  if (!frame) return std::nullopt;
  const int status = parse_number<int>(frame->word).value_or(MEMFATHOM_INTERNAL);
  return WorkerAnswer{static_cast<memfathom_status>(status), std::move(frame->text)};
}

}  // namespace memfathom
