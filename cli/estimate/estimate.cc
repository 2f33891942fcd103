#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/elapsed_line.h"
#include "cli/estimate/estimate_batch.h"
#include "cli/estimate/print_answer.h"
#include "cli/estimate/recommend.h"
#include "cli/estimate/shard.h"
#include "cli/estimate/torch_recording.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/timeline_json.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

ExitCode answer_batch(const std::string& file, BatchOptions question,
                      const std::optional<std::string>& shard, Context& context) {
  if (context.format == Format::kCsv || context.format == Format::kMarkdown) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--batch {} writes JSON lines, one per job; remove --format {}", file,
                            context.format == Format::kCsv ? "csv" : "markdown"));
  }
  if (question.slim && question.explains)
    throw Error(ErrorKind::kUsage, "--slim leaves explanations out; remove --explain");
  if (shard && file == "-")
    throw Error(ErrorKind::kUsage, "--shard needs a file; standard input has no parts");
  const LocalSession session(find_database(context));
  if (file == "-")
    return estimate_batch(std::cin, "standard input", question, session.estimator(), context);
  std::ifstream input(file);
  if (!input)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}: cannot be read; --batch requires a file of JSON lines, or - for standard input",
            file));
  if (shard) {
    const ShardRange range = begin_shard(input, file, parse_shard(*shard));
    question.lines_before = range.lines_before;
    question.bytes = range.bytes;
  }
  return estimate_batch(input, file, question, session.estimator(), context);
}

// For chrome://tracing and ui.perfetto.dev.
void write_timeline(const JobInput& input, const Estimator& estimator, const std::string& path) {
  const Timeline timeline = estimator.timeline(input.job);
  write_file_atomically(path, to_text(trace_events_json(timeline), kOneLine) + '\n');
}

}  // namespace

ExitCode run_estimate(const Arguments& arguments, Context& context) {
  OptionParser parser("estimate");
  JobSource source;
  RecommendSettings settings;
  bool strict = false;
  bool explain = false;
  bool recommends = false;
  bool by_thumb = false;
  bool slim = false;
  std::optional<std::string> shard;
  std::string by;
  std::string snapshot;
  std::string timeline;
  source.declare(parser);
  settings.declare(parser);
  parser.flag("--strict", strict);
  parser.flag("--explain", explain);
  parser.flag("--recommend", recommends);
  parser.flag("--rule-of-thumb", by_thumb);
  parser.flag("--slim", slim);
  parser.option("--shard", shard);
  parser.option("--by", by);
  parser.option("--snapshot-out", snapshot);
  parser.option("--trace-out", timeline);
  ViaTorch torch;
  parser.option("--via", torch.via);
  parser.option("--python", torch.python);
  parser.parse(source.without_command(arguments));

  if (const std::optional<std::string> file = source.batch_file()) {
    if (torch.via == "torch")
      throw Error(ErrorKind::kUsage, "--via torch takes one job at a time, not --batch");
    if (recommends || settings.asked() || by_thumb || !timeline.empty()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--batch {} only estimates; --recommend, --auto, --grid, --by-memory, "
                      "--frontier, --rule-of-thumb and --trace-out take one job at a time",
                      *file));
    }
    return answer_batch(*file, {source.reader(), explain, strict, slim}, shard, context);
  }
  if (slim || shard)
    throw Error(ErrorKind::kUsage, "--slim and --shard belong to --batch FILE.jsonl");
  if (settings.probability && !recommends && !settings.asked())
    throw Error(ErrorKind::kUsage, "--probability belongs to --recommend");
  if (recommends || settings.asked()) torch.vary = {"batch_size"};
  std::optional<RecordingFile> trace;  // as long as the job is asked about
  const JobInput input = recorded_if_asked(source.read("estimate"), torch, trace, context);
  const LocalSession session(find_database(context));
  if (!timeline.empty()) write_timeline(input, session.estimator(), timeline);
  if (recommends || settings.asked())
    return recommend_for(input, source, settings, session.estimator(), context);
  const EstimateAnswer answer = [&] {
    const ElapsedLine shown(context.err, progress_mode(STDERR_FILENO, context.quiet), "estimating");
    return answer_estimate(input, {explain, by_thumb}, session.estimator());
  }();
  if (by_thumb && !answer.rule)
    context.warn("the rule of thumb needs an image, a width and a depth; this job has none");
  print_answer(answer, input, {explain, by, snapshot}, session.estimator(), context);
  return verdict_code(answer.estimate, strict);
}

}  // namespace memfathom
