#include "cli/fleet/command_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "profiler/child_process.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = std::size_t{64} << 20;
constexpr std::size_t kChunk = std::size_t{64} << 10;

struct OutputPipe {
  OutputPipe() : OutputPipe(made()) {}
  explicit OutputPipe(const std::array<int, 2>& ends) : read_end(ends[0]), write_end(ends[1]) {}

  static std::array<int, 2> made() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("no pipe can be opened: {}", std::strerror(errno)));
    return ends;
  }

  FileDescriptor read_end, write_end;
};

// Appends what is there; false at the end of the stream.
bool read_some(const FileDescriptor& file, std::string& text) {
  std::array<char, kChunk> chunk{};
  const ssize_t got = read(file.get(), chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  text.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0;
}

// Reads both streams to their ends. Returns why it stopped before; empty if it did not.
std::string read_both(OutputPipe& out, OutputPipe& err, CommandOutput& output,
                      Clock::time_point deadline) {
  std::array<pollfd, 2> ends{pollfd{out.read_end.get(), POLLIN, 0},
                             pollfd{err.read_end.get(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return "it did not end in time";
    if (poll(ends.data(), ends.size(), static_cast<int>(left.count())) <= 0) continue;
    if (ends[0].revents != 0 && !read_some(out.read_end, output.out)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !read_some(err.read_end, output.err)) ends[1].fd = -1;
    if (output.out.size() + output.err.size() > kMaxOutput) return "it prints more than 64 MiB";
  }
  return "";
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandOutput run_captured(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  OutputPipe out;
  OutputPipe err;
  const FileDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ChildOptions options;
  options.descriptors = {nothing.get(), out.write_end.get(), err.write_end.get()};
  options.own_group = true;
  pid_t child = -1;
  if (const int failure = start_child(words, options, child); failure != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be started: {}", words.front(), std::strerror(failure)));
  }
  out.write_end.reset();
  err.write_end.reset();
  CommandOutput output;
  const std::string problem = read_both(out, err, output, Clock::now() + limit);
  if (!problem.empty()) kill(-child, SIGKILL);
  output.exit_code = wait_for(child);
  if (!problem.empty()) {
    throw Error(ErrorKind::kEnvironment, fmt::format("{} was stopped: {}", words.front(), problem));
  }
  return output;
}

}  // namespace memfathom
