#include "serve/status_report.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

// NOLINTNEXTLINE(readability-redundant-declaration): POSIX names it, no header declares it.
extern char** environ;

namespace memfathom {
namespace {

// The standard output of a program; empty if it failed.
std::string output_of(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t child = -1;
  const int failure =
      posix_spawn(&child, command.front().c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; failure == 0 && (got = read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 1;
  if (failure == 0) waitpid(child, &status, 0);
  return status == 0 ? text : "";
}

}  // namespace

std::string StatusReport::text() {
  constexpr std::chrono::seconds kFresh{1};
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (text_.empty() || now - read_ > kFresh) {
    text_ = output_of(command_);
    read_ = now;
  }
  return text_;
}

}  // namespace memfathom
