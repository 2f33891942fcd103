#include "profiler/probe_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "profiler/child_process.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

struct Pipe {
  Pipe() : ends(make()), read_end(ends[0]), write_end(ends[1]) {}
  static std::array<int, 2> make() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("cannot make a pipe for a probe: {}", std::strerror(errno)));
    }
    return ends;
  }
  std::array<int, 2> ends;
  FileDescriptor read_end;
  FileDescriptor write_end;
};

// What changes a probe's allocations, its plans or how its code is loaded. A calibration describes
// the defaults: these variables are no part of its environment.
constexpr std::array kScrubbed = {
    "PYTORCH_CUDA_ALLOC_CONF=",
    "PYTORCH_ALLOC_CONF=",
    "PYTORCH_NO_CUDA_MEMORY_CACHING=",
    "PYTORCH_TUNABLEOP_",
    "CUBLAS_WORKSPACE_CONFIG=",
    "CUBLASLT_WORKSPACE_SIZE=",
    "TORCH_CUBLAS",
    "TORCH_BLAS_PREFER_",
    "DISABLE_ADDMM_CUDA_LT=",
    "TORCH_CUDNN_",
    "TORCH_ALLOW_TF32_",
    "NVIDIA_TF32_OVERRIDE=",
    "CUDA_MODULE_LOADING=",
    "CUDA_MODULE_DATA_LOADING=",
    "CUDA_DEVICE_MAX_CONNECTIONS=",
    "NCCL_MIN_NCHANNELS=",
    "NCCL_MAX_NCHANNELS=",
    "NCCL_MIN_CTAS=",
    "NCCL_MAX_CTAS=",
    "NCCL_BUFFSIZE=",
};

// `added` must outlive the result.
std::vector<char*> probe_environment(std::vector<std::string>& added) {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (std::none_of(kScrubbed.begin(), kScrubbed.end(),
                     [&](const char* prefix) { return text.starts_with(prefix); }))
      kept.push_back(*entry);
  }
  for (std::string& entry : added) kept.push_back(entry.data());
  kept.push_back(nullptr);
  return kept;
}

pid_t start(const ProbeProgram& program, const Pipe& in, const Pipe& out, const Pipe& err) {
  std::vector<std::string> words{program.path.string()};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  ChildOptions options;
  options.descriptors = {in.read_end.get(), out.write_end.get(), err.write_end.get()};
  options.own_group = true;
  pid_t child = 0;
  std::vector<std::string> added = program.variables;
  const std::vector<char*> environment = probe_environment(added);
  options.environment = environment.data();
  if (const int failure = start_child(std::move(words), options, child); failure != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("cannot start the probe {}: {}", program.path.string(),
                            std::strerror(failure)));
  }
  return child;
}

// Writing to a dead probe must not kill this process with SIGPIPE.
void send(FileDescriptor& pipe, const std::string& message) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  write_all(pipe, message);
  pipe.reset();
  sigaction(SIGPIPE, &before, nullptr);
}

// Appends the available bytes; false at the end.
bool receive(int descriptor, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t n = read(descriptor, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

struct Answer {
  std::string out;
  std::string err;
};

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && *flag; }

// Reads until both pipes close, which they do with the process, until the deadline or until `stop`.
Answer listen(const Pipe& out, const Pipe& err, Clock::time_point deadline,
              const std::atomic<bool>* stop) {
  Answer answer;
  std::array<pollfd, 2> pipes{{{out.read_end.get(), POLLIN, 0}, {err.read_end.get(), POLLIN, 0}}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || is_set(stop)) break;
    constexpr long kStopMilliseconds =
        100;  // until a stop is noticed whose signal came before poll
    if (poll(pipes.data(), pipes.size(), static_cast<int>(std::min(left, kStopMilliseconds))) <= 0)
      continue;
    for (pollfd& pipe : pipes) {
      if (pipe.fd < 0 || pipe.revents == 0) continue;
      if (!receive(pipe.fd, pipe.fd == pipes[0].fd ? answer.out : answer.err)) pipe.fd = -1;
    }
  }
  return answer;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

// The exit status of a process that ends before the deadline; nullopt otherwise.
std::optional<int> wait_until(pid_t child, Clock::time_point deadline,
                              const std::atomic<bool>* stop) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline || is_set(stop)) return std::nullopt;
    poll(nullptr, 0, 1);
  }
  return status;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// The probe's last message without its program name, which the caller adds again when it prints it.
std::string sentence_of(const std::string& text) {
  constexpr std::string_view kOurName = "memfathom: ";
  std::string line = last_line(text);
  if (line.starts_with(kOurName)) line.erase(0, kOurName.size());
  return line;
}

ProbeOutcome judge(int status, const Answer& answer) {
  ProbeOutcome outcome;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool killed =
        signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
    outcome.status = killed ? SampleStatus::kKilled : SampleStatus::kCrashed;
    outcome.note = fmt::format("signal {} ({})", signal, strsignal(signal));
    return outcome;
  }
  if (WEXITSTATUS(status) != 0) {
    outcome.status = SampleStatus::kFailed;
    outcome.note = sentence_of(answer.err);
    if (outcome.note.empty()) outcome.note = fmt::format("exit code {}", WEXITSTATUS(status));
    return outcome;
  }
  try {
    outcome.reply = reply_from(answer.out);
  } catch (const Error& error) {
    outcome.status = SampleStatus::kFailed;
    outcome.note = error.what();
    return outcome;
  }
  if (outcome.reply->sample) {
    outcome.status = outcome.reply->sample->status;
    outcome.note = outcome.reply->sample->status_note;
  }
  return outcome;
}

}  // namespace

ProbeProgram own_probe_program() {
  if (const char* given = std::getenv("MEMFATHOM_PROBE")) return {given, {}};
  return {std::filesystem::read_symlink("/proc/self/exe"), {"__probe"}};
}

ProbeOutcome run_probe(const ProbeProgram& program, const ProbeRequest& request, Milliseconds limit,
                       const std::atomic<bool>* stop) {
  Pipe in;
  Pipe out;
  Pipe err;
  const Clock::time_point deadline = Clock::now() + limit;
  const pid_t child = start(program, in, out, err);
  in.read_end.reset();
  out.write_end.reset();
  err.write_end.reset();
  send(in.write_end, to_message(request));
  const Answer answer = listen(out, err, deadline, stop);
  if (const std::optional<int> status = wait_until(child, deadline, stop))
    return judge(*status, answer);
  kill(-child, SIGKILL);
  wait_for(child);
  if (is_set(stop)) return {SampleStatus::kKilled, "stopped on request", {}};
  return {SampleStatus::kTimedOut,
          fmt::format("no answer within {:.3g} s", static_cast<double>(limit.count()) / 1000),
          {}};
}

}  // namespace memfathom
