#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimate_text.h"
#include "cli/estimation.h"
#include "cli/job_source.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "estimator/job/read_job.h"

extern char** environ;

namespace memfathom {
namespace {

// The command's own exit code; a signal is 128 and its number, as shells have it.
int run_child(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environ);
  if (failure != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be run: {}; is it installed and in PATH?", command.front(),
                            std::strerror(failure)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ExitCode run_check(const Arguments& arguments, Context& context) {
  OptionParser parser("check");
  JobSource source;
  std::vector<std::string> command;
  bool strict = false;
  source.declare(parser);
  parser.positional("COMMAND", command);
  parser.flag("--strict", strict);
  parser.parse(arguments);
  const Estimate estimate = Estimation(context).answer(read_job(source.read("check").document));
  const VerdictStatus status = estimate.verdict.status;
  if (status == VerdictStatus::kUnknown) {
    throw Error(ErrorKind::kUsage, "check needs a target: add --gpu rtx-4090 or --gpu-memory 24");
  }
  const bool undecided =
      status == VerdictStatus::kTight || estimate.calibration.status == CalibrationStatus::kNone;
  const bool run = status != VerdictStatus::kDoesNotFit && !(strict && undecided);
  if (!context.quiet || !run) context.err << verdict_sentence(estimate, false);
  if (!run) {
    context.err
        << (command.empty()
                ? ""
                : fmt::format(
                      "{} was not run; memfathom recommend says what would make the job fit\n",
                      command.front()));
    return status == VerdictStatus::kDoesNotFit ? ExitCode::kNo : ExitCode::kUndecided;
  }
  if (command.empty()) return ExitCode::kYes;
  context.out.flush();
  return static_cast<ExitCode>(run_child(command));
}

}  // namespace memfathom
