#include "kernels/workspaces/cudnn_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/companion_files.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "kernels/workspaces/architectures.h"

namespace memfathom {
namespace {

constexpr std::size_t kLinesPerProcess =
    2048;  // questions; below, loading cuDNN once more costs more than it saves

std::optional<Bytes> bytes_of(const std::string& answer) {
  if (answer.starts_with("refused ")) return std::nullopt;
  std::int64_t bytes = -1;
  const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
  if (error != std::errc{} || end != answer.data() + answer.size() || bytes < 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("cuDNN's planner answered \"{}\" where bytes were expected",
                            answer.substr(0, 100)));
  }
  return Bytes{bytes};
}

}  // namespace

std::filesystem::path find_planner_program() {
  constexpr const char* kName = "memfathom-cudnn-planner";
  if (const char* named = std::getenv("MEMFATHOM_CUDNN_PLANNER");
      named != nullptr && *named != '\0')
    return named;
  const std::vector<std::filesystem::path> binaries = own_binaries();
  for (const std::filesystem::path& path : companion_places(binaries, "libexec", kName)) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
  }
  const auto of_python = python_package_places(binaries, "memfathom_cuda", kName);
  if (!of_python.empty()) return of_python.front();
  throw Error(
      ErrorKind::kEnvironment,
      fmt::format(
          "{} was not found next to {} or in its libexec folder; this build has no cuDNN planner",
          kName, binaries.empty() ? "the program" : binaries.front().string()));
}

PlannerCommand planner_command(const CudnnPlannerOptions& options) {
  PlannerCommand command{
      .program = options.program.empty() ? find_planner_program() : options.program,
      .arguments = {},
      .library_directory = options.library_directory};
  if (!options.allow_tf32) command.arguments.emplace_back("--no-tf32");
  if (options.deterministic) command.arguments.emplace_back("--deterministic");
  if (!options.libcuda.empty()) {
    command.arguments.insert(command.arguments.end(), {"--libcuda", options.libcuda.string()});
  }
  return command;
}

CudnnPlanner::CudnnPlanner(CudnnPlannerOptions options)
    : options_(std::move(options)),
      device_line_("device " + to_cudnn_json(describe_gpu(options_.gpu))),
      processes_(static_cast<std::size_t>(std::max(1, options_.processes))) {}

CudnnPlanner::~CudnnPlanner() = default;

PlannerProcess& CudnnPlanner::process(std::size_t index) {
  std::unique_ptr<PlannerProcess>& process = processes_[index];
  if (process == nullptr) {
    auto started = std::make_unique<PlannerProcess>(planner_command(options_));
    const std::string answer = started->ask(std::span(&device_line_, 1)).front();
    if (answer != "ok") {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("cuDNN {} does not plan for {}: {}", started->cudnn_version(),
                              options_.gpu, answer));
    }
    process = std::move(started);
  }
  return *process;
}

std::vector<std::string> CudnnPlanner::query_lines(std::span<const std::string> lines) {
  const std::lock_guard lock(mutex_);
  const std::size_t shares =
      std::clamp<std::size_t>(lines.size() / kLinesPerProcess + 1, 1, processes_.size());
  std::vector<std::vector<std::string>> answers(shares);
  parallel_for(shares, [&](std::size_t share) {
    const std::size_t begin = lines.size() * share / shares;
    const std::size_t end = lines.size() * (share + 1) / shares;
    try {
      answers[share] = process(share).ask(lines.subspan(begin, end - begin));
    } catch (...) {
      processes_[share].reset();  // a later question starts a fresh one
      throw;
    }
  });
  for (std::size_t share = 1; share < shares; ++share) {
    answers[0].insert(answers[0].end(), answers[share].begin(), answers[share].end());
  }
  return std::move(answers[0]);
}

std::vector<std::optional<Bytes>> CudnnPlanner::ask(std::span<const ConvolutionQuery> queries) {
  std::vector<std::string> lines;
  lines.reserve(queries.size());
  for (const ConvolutionQuery& query : queries) lines.push_back(to_string(query));
  std::vector<std::optional<Bytes>> answers;
  answers.reserve(queries.size());
  for (const std::string& answer : query_lines(lines)) answers.push_back(bytes_of(answer));
  return answers;
}

std::string CudnnPlanner::cudnn_version() {
  const std::lock_guard lock(mutex_);
  return process(0).cudnn_version();
}

}  // namespace memfathom
