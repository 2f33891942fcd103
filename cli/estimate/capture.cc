// capture: records a PyTorch script without a GPU, in a process of its own, and estimates the step.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/print_answer.h"
#include "cli/estimate/python_program.h"
#include "cli/estimate/relayed_command.h"
#include "cli/job/job_options.h"
#include "cli/option_parser.h"
#include "cli/text/holders_text.h"
#include "core/error.h"
#include "core/gpus.h"
#include "estimator/session/answer_job.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

constexpr int kScriptFailed = 2;  // exit codes of python -m memfathom.torch
constexpr int kNoTorch = 3;

struct CaptureOptions {
  std::int64_t iterations = 2;
  std::int64_t world = 1;
  std::string python;
  std::string trace;  // where the trace is kept; empty: nowhere
  AnswerOptions answer;
  bool strict = false;
  std::vector<std::string> command;  // the script, or -m and a module, with its arguments
};

// The trace's file: the user's, or a temporary one that is removed on destruction.
class TraceFile {
 public:
  explicit TraceFile(std::string kept) : path_(std::move(kept)), temporary_(path_.empty()) {
    if (!temporary_) return;
    constexpr std::string_view kSuffix = ".jsonl.gz";
    path_ = (std::filesystem::temp_directory_path() / "memfathom-XXXXXX").string().append(kSuffix);
    const int file = mkostemps(path_.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
    if (file < 0) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("{}: a temporary file cannot be created; set TMPDIR, or keep the "
                              "trace with -o FILE",
                              path_));
    }
    close(file);
  }
  ~TraceFile() {
    if (temporary_) unlink(path_.c_str());
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool temporary_;
};

// What the script is told about its GPU; without a target it is an A100 with 80 GB.
nlohmann::json gpu_facts(const Node& document) {
  nlohmann::json facts = nlohmann::json::object();
  const Node* target = document.find("target");
  if (target == nullptr) return facts;
  if (const Node* name = target->find("gpu")) {
    const Gpu& gpu = gpu_named(name->as_string(), "target.gpu");
    facts["name"] = gpu.product;
    facts["memory"] = gpu.memory().count();
    if (const int capability = gpu.compute_capability(); capability > 0)
      facts["capability"] = {capability / 10, capability % 10};
  }
  return facts;
}

std::vector<std::string> words_of(const CaptureOptions& options, const std::string& trace,
                                  const nlohmann::json& gpu) {
  std::vector<std::string> words{find_python(options.python),
                                 "-m",
                                 "memfathom.torch",
                                 "-o",
                                 trace,
                                 "--iterations",
                                 std::to_string(options.iterations),
                                 "--world",
                                 std::to_string(options.world),
                                 "--gpu",
                                 gpu.dump()};
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

// The package must be found by a Python that does not have it installed.
void show_package() {
  const std::string folder = python_package_folder();
  if (folder.empty()) return;
  const char* before = std::getenv("PYTHONPATH");
  const bool has_more = before != nullptr && *before != '\0';
  setenv("PYTHONPATH", has_more ? fmt::format("{}:{}", folder, before).c_str() : folder.c_str(), 1);
}

// "2.15.0" of "torch 2.15.0+cu132"; empty if the header does not say it.
std::string torch_version(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const TraceReader reader(file, path);
  const Node header = parse_json(reader.header(), path, 1);
  const Node* with = header.find("recorded_with");
  if (with == nullptr || !with->is_string()) return "";
  std::string version = with->as_string();
  constexpr std::string_view kName = "torch ";
  if (!version.starts_with(kName)) return "";
  version.erase(0, kName.size());
  return version.substr(0, version.find('+'));
}

Node document_of(const std::string& trace) {
  nlohmann::json job{{"model", {{"trace", trace}}}};
  if (const std::string version = torch_version(trace); !version.empty())
    job["target"]["stack"]["version"] = version;
  return node_from_json(job);
}

// Runs the script; its own output goes to standard error. Returns false if it raised.
bool record(const CaptureOptions& options, const std::string& trace, const nlohmann::json& gpu) {
  show_package();
  const std::vector<std::string> words = words_of(options, trace, gpu);
  RelayedCommand command(words, STDERR_FILENO);
  const int code = command.wait();
  if (code == 0) return true;
  if (code == kScriptFailed) return false;
  throw Error(ErrorKind::kEnvironment,
              code == kNoTorch
                  ? fmt::format("{} has no PyTorch; name the Python that runs your script with "
                                "--python, or activate its environment",
                                words.front())
                  : fmt::format("{} ended with exit code {} before two steps were recorded; see "
                                "its messages above",
                                options.command.front(), code));
}

CaptureOptions parsed(const Arguments& arguments, JobOptions& job) {
  CaptureOptions options;
  OptionParser parser("capture");
  job.declare(parser);
  parser.option("--iterations", options.iterations);
  parser.option("--world", options.world);
  parser.option("--python", options.python);
  parser.option("--trace-out,-o", options.trace);
  parser.option("--by", options.answer.by);
  parser.option("--snapshot-out", options.answer.snapshot);
  parser.flag("--explain", options.answer.explains);
  parser.flag("--strict", options.strict);
  parser.positional("SCRIPT", options.command);
  parser.parse(arguments);
  if (options.command.empty() || (options.command.front() == "-m" && options.command.size() < 2)) {
    throw Error(ErrorKind::kUsage,
                "capture needs a script: memfathom capture train.py --its --arguments, or -m "
                "module (see memfathom capture --help)");
  }
  constexpr std::int64_t kMaxIterations = 100;
  constexpr std::int64_t kMaxWorld = 1 << 16;
  if (options.iterations < 1 || options.iterations > kMaxIterations) {
    throw Error(ErrorKind::kUsage, fmt::format("--iterations is {}; it must be from 1 to {}",
                                               options.iterations, kMaxIterations));
  }
  if (options.world < 1 || options.world > kMaxWorld) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--world is {}; it must be from 1 to {}", options.world, kMaxWorld));
  }
  return options;
}

}  // namespace

ExitCode run_capture(const Arguments& arguments, Context& context) {
  JobOptions job;
  const CaptureOptions options = parsed(arguments, job);
  // An unknown GPU is refused before the script runs.
  const nlohmann::json gpu = gpu_facts(job.document(node_from_json(nlohmann::json::object())));
  if (!options.answer.by.empty()) parse_holder_key(options.answer.by);
  const TraceFile trace(options.trace);
  context.out.flush();
  if (!record(options, trace.path(), gpu)) return ExitCode::kUsage;
  const JobInput input = complete_job(job.document(document_of(trace.path())));
  const LocalSession session(find_database(context));
  const EstimateAnswer answer =
      answer_estimate(input, {options.answer.explains, false}, session.estimator());
  print_answer(answer, input, options.answer, session.estimator(), context);
  return verdict_code(answer.estimate, options.strict);
}

}  // namespace memfathom
