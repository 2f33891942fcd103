// oom: reads the last out-of-memory message of a log.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "cli/commands.h"
#include "cli/observe/oom_text.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "core/error.h"
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
  parser.positional("LOG", file);
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
  if (context.format == Format::kJson) {
    context.out << oom_json(*message).dump(2) << '\n';
  } else {
    context.out << oom_text(*message, context);
  }
  if (!job.empty()) keep(*message, job, gpu, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
