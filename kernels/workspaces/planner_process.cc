#include "kernels/workspaces/planner_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr int kReplyTimeoutMilliseconds =
    30'000;  // a cold disk takes two seconds to bring cuDNN in
constexpr std::size_t kLinesAtOnce =
    64;  // far below what a socket holds, so neither side can block the other

std::vector<std::string> child_environment(const std::filesystem::path& library_directory) {
  std::vector<std::string> variables;
  std::string path = library_directory.string();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!library_directory.empty() && text.starts_with("LD_LIBRARY_PATH=")) {
      path += fmt::format(":{}", text.substr(std::strlen("LD_LIBRARY_PATH=")));
    } else {
      variables.emplace_back(text);
    }
  }
  if (!library_directory.empty()) variables.push_back("LD_LIBRARY_PATH=" + path);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Both ends of the conversation go through one socket pair: writing to a child that has ended is
// then an error (MSG_NOSIGNAL) instead of a signal to the whole program.
std::array<int, 2> make_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("no socket pair for cuDNN's planner: {}", std::strerror(errno)));
  }
  return ends;
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int fd : descriptors) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace

PlannerProcess::PlannerProcess(const PlannerCommand& command) : program_(command.program) {
  const std::array<int, 2> talk = make_pair();
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    close_all({talk[0], talk[1]});
    throw Error(ErrorKind::kEnvironment,
                fmt::format("no pipe for cuDNN's planner: {}", std::strerror(errno)));
  }
  std::vector<std::string> arguments{command.program.string()};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> variables = child_environment(command.library_directory);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, talk[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, talk[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
  const int status = posix_spawn(&child_, program_.c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close_all({talk[1], errors[1]});
  socket_ = talk[0];
  errors_ = errors[0];
  if (status != 0) {
    child_ = -1;
    stop();
    throw Error(ErrorKind::kEnvironment, fmt::format("cuDNN's planner {} could not be started: {}",
                                                     program_.string(), std::strerror(status)));
  }
  try {
    const std::string greeting = read_line();
    if (!greeting.starts_with("cudnn ")) fail("greeted with \"" + greeting.substr(0, 100) + "\"");
    cudnn_version_ = greeting.substr(std::strlen("cudnn "));
  } catch (...) {
    stop();
    throw;
  }
}

PlannerProcess::~PlannerProcess() { stop(); }

void PlannerProcess::stop() {
  close_all({socket_, errors_});
  socket_ = errors_ = -1;
  if (child_ < 0) return;
  // With its input closed it ends by itself; one that hangs inside the library would not.
  if (waitpid(child_, nullptr, WNOHANG) == 0) {
    kill(child_, SIGKILL);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  child_ = -1;
}

void PlannerProcess::fail(std::string_view when) {
  std::string said;
  std::array<char, 1024> chunk{};
  // Give the child's last words a moment to arrive: its end closes the pipe.
  pollfd words{errors_, POLLIN, 0};
  if (poll(&words, 1, 1000) > 0) {
    const ssize_t got = read(errors_, chunk.data(), chunk.size());
    if (got > 0) said.assign(chunk.data(), static_cast<std::size_t>(got));
  }
  while (!said.empty() && said.back() == '\n') said.pop_back();
  throw Error(ErrorKind::kEnvironment, fmt::format("cuDNN's planner {} {}{}{}", program_.string(),
                                                   when, said.empty() ? "" : ": ", said));
}

std::string PlannerProcess::read_line() {
  while (true) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd ready{socket_, POLLIN, 0};
    const int polled = poll(&ready, 1, kReplyTimeoutMilliseconds);
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) fail("did not answer within 30 seconds");
    std::array<char, 4096> chunk{};
    const ssize_t got = recv(socket_, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("ended before it answered");
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::vector<std::string> PlannerProcess::ask(std::span<const std::string> lines) {
  std::vector<std::string> answers;
  answers.reserve(lines.size());
  while (!lines.empty()) {
    const std::span<const std::string> some = lines.first(std::min(lines.size(), kLinesAtOnce));
    lines = lines.subspan(some.size());
    std::string text;
    for (const std::string& line : some) text += line + '\n';
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t sent = send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) fail("ended before it was asked");
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    for (std::size_t i = 0; i < some.size(); ++i) answers.push_back(read_line());
  }
  return answers;
}

}  // namespace memfathom
