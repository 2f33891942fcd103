// oom: reads the last out-of-memory message of a log.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/observe/oom_text.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "estimator/job/patch.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/oom_json.h"
#include "estimator/session/answer_job.h"
#include "estimator/session/job_input.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxLog = std::size_t{64} << 20;

// The end of the log, where the last message is; at most kMaxLog bytes of it.
std::string read_log(std::istream& input) {
  std::string text;
  std::string part(std::size_t{1} << 20, '\0');
  while (input.read(part.data(), static_cast<std::streamsize>(part.size())), input.gcount() > 0) {
    text.append(part, 0, static_cast<std::size_t>(input.gcount()));
    if (text.size() > 2 * kMaxLog) text.erase(0, text.size() - kMaxLog);
  }
  return text;
}

std::string log_of(const std::string& file) {
  if (file == "-") return read_log(std::cin);
  std::ifstream input(file, std::ios::binary);
  std::string text = input ? read_log(input) : "";
  if (!input && !input.eof()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the log cannot be read; name a file, or - for standard input", file));
  }
  return text;
}

// A size as a job has it.
std::string in_words(Bytes size) {
  constexpr std::int64_t kMiB = 1 << 20;
  return fmt::format("{}MiB", size.count() / kMiB);
}

// The job on the GPU of the message: --gpu, the job's own, or one with the message's memory.
JobInput job_of_message(const OomMessage& message, const std::string& path,
                        const std::string& gpu) {
  JobInput input = read_job_file(path);
  Patch patch;
  if (!gpu.empty()) {
    patch.push_back({"target.gpu", node_from_json(gpu)});
  } else if (message.capacity && input.job.target.gpu.empty()) {
    patch.push_back({"target.memory", node_from_json(in_words(*message.capacity))});
  }
  if (message.in_others)
    patch.push_back({"target.used_by_others", node_from_json(in_words(*message.in_others))});
  return patch.empty() ? std::move(input) : complete_job(patched(input.document, patch));
}

// The cheapest combination of changes with which the job would have fitted.
OomRemedy remedy_of(const JobInput& input, const Context& context) {
  const LocalSession session(find_database(context));
  const Estimator& estimator = session.estimator();
  OomRemedy remedy;
  remedy.estimate = answer_estimate(input, {}, estimator).estimate;
  if (remedy.estimate.verdict.status != VerdictStatus::kDoesNotFit) return remedy;
  RecommendOptions options;
  options.margin = 0;
  remedy.change =
      cheapest_configuration(input.document, estimator.search_function(), options, input.job);
  return remedy;
}

// That the job did not fit, for `fit --observations`.
void keep(const OomMessage& message, const std::string& job, const std::string& gpu,
          const Context& context) {
  const JobInput input = read_job_file(job);
  Observation seen;
  seen.job = to_json(input.document).dump();
  seen.metric = Metric::kDevice;
  seen.fits = false;
  seen.gpu = gpu.empty() ? input.job.target.gpu : gpu;
  seen.framework = "pytorch";
  seen.source = "memfathom oom";
  if (message.tensors_needed())
    seen.note = fmt::format("tensors and the request: {} bytes", message.tensors_needed()->count());
  store_observations({seen}, context);
  context.note("kept as an observation: the job does not fit");
}

}  // namespace

ExitCode run_oom(const Arguments& arguments, Context& context) {
  OptionParser parser("oom");
  std::string file;
  std::string job;
  std::string gpu;
  std::string what_if;
  parser.positional("LOG", file);
  parser.option("--job", what_if);
  parser.option("--keep", job);
  parser.option("--gpu", gpu);
  parser.parse(arguments);
  const std::optional<OomMessage> message = find_oom_message(log_of(file));
  if (!message) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no out-of-memory message of PyTorch, JAX, vLLM or a CUDA library "
                            "was found; paste the whole message",
                            file == "-" ? "standard input" : file));
  }
  std::optional<OomRemedy> remedy;
  std::optional<JobInput> input;
  if (!what_if.empty()) {
    input = job_of_message(*message, what_if, gpu);
    remedy = remedy_of(*input, context);
  }
  if (context.format == Format::kJson) {
    nlohmann::ordered_json json = oom_json(*message);
    if (remedy) json["job"] = remedy_json(*remedy, *input);
    context.out << to_text(json, kIndented) << '\n';
  } else {
    context.out << oom_text(*message, context);
    if (remedy && context.format != Format::kCsv)
      context.out << remedy_text(*remedy, *input, context);
  }
  if (!job.empty()) keep(*message, job, gpu, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
