// capture: records a PyTorch script without a GPU, in a process of its own, and estimates the step.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/capture_live.h"
#include "cli/estimate/print_answer.h"
#include "cli/estimate/torch_recording.h"
#include "cli/job/job_options.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "cli/text/holders_text.h"
#include "core/error.h"
#include "estimator/readers/recording_file.h"
#include "estimator/session/answer_job.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

constexpr int kScriptFailed = 2;  // exit code of python -m memfathom.torch

struct CaptureOptions {
  std::int64_t iterations = 2;
  std::int64_t world = 1;
  std::string python;
  std::string trace;  // where the trace is kept; empty: nowhere
  AnswerOptions answer;
  bool strict = false;
  bool live = false;                 // also on this machine's GPU
  std::string live_snapshot;         // where PyTorch's record of that run is kept; empty: nowhere
  std::vector<std::string> vary;     // sizes, each with the script's name of it: batch_size=--batch
  std::vector<std::string> command;  // the script, or -m and a module, with its arguments
};

std::vector<std::string> words_of(const CaptureOptions& options, const std::string& trace,
                                  const nlohmann::json& gpu) {
  std::vector<std::string> words{"script",
                                 "-o",
                                 trace,
                                 "--iterations",
                                 std::to_string(options.iterations),
                                 "--world",
                                 std::to_string(options.world),
                                 "--gpu",
                                 gpu.dump()};
  for (const std::string& size : options.vary) words.insert(words.end(), {"--vary", size});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

// Runs the script; its own output goes to standard error. Returns false if it raised.
bool record(const CaptureOptions& options, const std::string& trace, const nlohmann::json& gpu) {
  const int code = run_with_torch(options.python, words_of(options, trace, gpu));
  if (code == 0) return true;
  if (code == kScriptFailed) return false;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} ended with exit code {} before two steps were recorded; see its "
                          "messages above",
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
  parser.option("--vary", options.vary);
  parser.flag("--live", options.live);
  parser.option("--live-snapshot", options.live_snapshot);
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

namespace {

// The answer about a trace; `live` is what the same script did on the GPU, in PyTorch's own record.
ExitCode answer_about(const CaptureOptions& options, const JobOptions& job,
                      const RecordingFile& trace, const std::optional<LiveRun>& live,
                      const std::string& snapshot, Context& context) {
  Node document = job.document(job_of_recording(trace.path()));
  if (live && document.find("target") != nullptr && document.at("target").find("gpu") == nullptr &&
      !listed_gpu(*live).empty())
    document.assign("target.gpu", Node::string(listed_gpu(*live)));
  const JobInput input = complete_job(document);
  const LocalSession session(find_database(context));
  const EstimateAnswer answer =
      answer_estimate(input, {options.answer.explains, false}, session.estimator());
  AnswerOptions shown = options.answer;
  if (!live) {
    print_answer(answer, input, shown, session.estimator(), context);
    return verdict_code(answer.estimate, options.strict);
  }
  const HistoryComparison history =
      compare_histories(load_trace(snapshot), session.estimator().history(input.job));
  const nlohmann::ordered_json said = live_json(*live, history);
  shown.live = &said;
  print_answer(answer, input, shown, session.estimator(), context);
  if (context.format != Format::kJson && context.format != Format::kCsv)
    context.out << live_text(*live, answer.estimate, history);
  if (options.trace.empty()) {
    context.note("keep the recording with -o FILE to store these peaks as observations");
  } else {
    Node kept = document;
    kept.assign("model.trace", Node::string(std::filesystem::absolute(options.trace).string()));
    store_observations(observations_of(*live, to_json(kept).dump()), context);
    context.note("kept as observations");
  }
  return verdict_code(answer.estimate, options.strict);
}

}  // namespace

ExitCode run_capture(const Arguments& arguments, Context& context) {
  JobOptions job;
  const CaptureOptions options = parsed(arguments, job);
  // An unknown GPU is refused before the script runs.
  const Node asked = job.document(node_from_json(nlohmann::json::object()));
  nlohmann::json gpu = gpu_facts(asked);
  if (!options.answer.by.empty()) parse_holder_key(options.answer.by);
  const RecordingFile trace(options.trace);
  std::optional<RecordingFile> snapshot;  // PyTorch's record of the run on the GPU
  context.out.flush();
  std::optional<LiveRun> live;
  if (options.live) {
    snapshot.emplace(options.live_snapshot, ".pickle");
    live = run_live(options.python, options.iterations, snapshot->path(), options.command);
    if (!live) return ExitCode::kUsage;
    if (gpu.empty() && !listed_gpu(*live).empty()) {
      Node target = Node::map();
      target.assign("target.gpu", Node::string(listed_gpu(*live)));
      gpu = gpu_facts(target);
    }
  }
  if (!record(options, trace.path(), gpu)) return ExitCode::kUsage;
  return answer_about(options, job, trace, live, snapshot ? snapshot->path() : "", context);
}

}  // namespace memfathom
