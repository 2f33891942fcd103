#include "cli/fleet/submission.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/database.h"
#include "cli/fleet/slurm.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "core/lowercase.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

// How long a job that Slurm calls ended may lack its outcome: file systems show files late.
constexpr double kOutcomePatience = 60;
constexpr double kFailurePatience = 3;
constexpr double kControllerPatience = 600;

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

bool has_failed(std::string_view state) {
  return is_one_of(state, {"FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY",
                           "BOOT_FAIL", "DEADLINE", "REVOKED"});
}

bool is_queued(std::string_view state) { return !has_failed(state) && state != "COMPLETED"; }

void set_state(TrackedJob& job, const std::string& state, const Context& context) {
  if (job.state == state) return;
  job.state = state;
  context.note(fmt::format("{}: job {} {}{}", job.label, job.id, state,
                           job.node.empty() ? "" : " on " + job.node));
}

void finish(TrackedJob& job, JobOutcome outcome, const Context& context) {
  job.node = outcome.node;
  job.progress = outcome.exit_code == 0 ? JobProgress::kDone : JobProgress::kFailed;
  job.problem = outcome.message;
  if (job.progress == JobProgress::kFailed && job.problem.empty())
    job.problem = fmt::format("exit code {}: {}", outcome.exit_code, last_line_of(job.log));
  job.outcome = std::move(outcome);
  set_state(job, job.progress == JobProgress::kDone ? "done" : "failed", context);
}

void fail(TrackedJob& job, const std::string& state, std::string why, const Context& context) {
  job.progress = JobProgress::kFailed;
  job.problem = std::move(why);
  set_state(job, state, context);
}

void judge_without_outcome(TrackedJob& job, const SlurmJobState* known, double interval,
                           const Context& context) {
  if (known != nullptr && is_queued(known->state)) {
    job.polls_without_news = 0;
    job.node = known->node;
    if (known->reason == "DependencyNeverSatisfied") {
      fail(job, "cancelled", "a job that it waited for failed", context);
      return;
    }
    set_state(job, lowercase(known->state), context);
    return;
  }
  const bool failed = known != nullptr && has_failed(known->state);
  const double waited = interval * static_cast<double>(++job.polls_without_news);
  if (waited < (failed ? kFailurePatience : kOutcomePatience)) return;
  const std::string said = last_line_of(job.log);
  fail(job, failed ? lowercase(known->state) : "lost",
       said.empty() ? "it ended before the program could report" : said, context);
}

void ask_controller(std::vector<TrackedJob>& jobs, const std::string& names, double interval,
                    const Context& context) {
  const std::map<std::string, SlurmJobState> known = jobs_named(names);
  for (TrackedJob& job : jobs) {
    if (job.progress != JobProgress::kWaiting) continue;
    if (std::optional<JobOutcome> outcome = read_outcome(job.outcome_file)) {
      finish(job, std::move(*outcome), context);
      continue;
    }
    const auto found = known.find(job.id);
    judge_without_outcome(job, found == known.end() ? nullptr : &found->second, interval, context);
  }
}

}  // namespace

void declare(OptionParser& parser, SubmitOptions& options) {
  parser.option("--folder", options.folder);
  parser.option("--partition", options.partition);
  parser.option("--account", options.account);
  parser.option("--qos", options.qos);
  parser.option("--reservation", options.reservation);
  parser.option("--time", options.time);
  parser.option("--program", options.program);
  parser.option("--sbatch", options.sbatch);
  parser.option("--interval", options.interval);
  parser.flag("--no-wait", options.no_wait);
}

void check(const SubmitOptions& options) {
  const auto check_word = [](const char* option, const std::optional<std::string>& word) {
    if (word) require_slurm_word(option, *word);
  };
  check_word("--partition", options.partition);
  check_word("--account", options.account);
  check_word("--qos", options.qos);
  check_word("--reservation", options.reservation);
  if (options.time && options.time->find_first_not_of("0123456789:-") != std::string::npos) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--time is \"{}\"; write minutes, or 1:30:00", *options.time));
  }
  for (const std::string& option : options.sbatch) {
    if (!option.starts_with("--")) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--sbatch is \"{}\"; write a whole option: --sbatch=--constraint=nvlink",
                      option));
    }
  }
  if (!(options.interval >= 0.05 && options.interval <= 3600)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--interval is {}; write seconds from 0.05 to 3600", options.interval));
  }
}

void require_concurrency(std::int64_t tasks) {
  if (tasks >= 1 && tasks <= 10000) return;
  throw Error(ErrorKind::kUsage, fmt::format("--concurrency is {}; write 1 to 10000", tasks));
}

FleetFolder fleet_folder(const std::optional<std::string>& given, const Context& context) {
  return FleetFolder(given ? fs::path(*given)
                           : fs::absolute(database_path(context)).parent_path() / "fleet");
}

std::vector<std::string> sbatch_options(const SubmitOptions& options, const std::string& name,
                                        const fs::path& log) {
  std::vector<std::string> words{"--job-name=" + name, "--output=" + log.string(), "--requeue",
                                 "--open-mode=append"};
  const auto add = [&](const char* option, const std::optional<std::string>& value) {
    if (value) words.push_back(fmt::format("{}={}", option, *value));
  };
  add("--partition", options.partition);
  add("--account", options.account);
  add("--qos", options.qos);
  add("--reservation", options.reservation);
  add("--time", options.time);
  words.insert(words.end(), options.sbatch.begin(), options.sbatch.end());
  return words;
}

std::vector<std::string> job_words(const SubmitOptions& options, const FleetFolder& folder,
                                   const std::string& database, const Arguments& arguments) {
  const std::string program =
      options.program ? *options.program : fs::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words{
      folder.script().string(), program, "--db", database, "--quiet", "fleet", "job", "--folder",
      folder.path().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

bool follow(std::vector<TrackedJob>& jobs, const std::string& names, double interval,
            const Context& context) {
  const InterruptGuard interrupt;
  double silent = 0;  // seconds without an answer of the controller
  while (!interrupt.asked()) {
    try {
      ask_controller(jobs, names, interval, context);
      silent = 0;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kEnvironment || silent > kControllerPatience) throw;
      if (silent == 0) context.note(fmt::format("{}; asking again", error.what()));
      silent += interval;
    }
    const bool waiting = std::any_of(jobs.begin(), jobs.end(), [](const TrackedJob& job) {
      return job.progress == JobProgress::kWaiting;
    });
    if (!waiting) return true;
    poll(nullptr, 0, static_cast<int>(std::lround(1000 * interval)));
  }
  context.note("stopped following; the jobs go on, and the same command resumes");
  return false;
}

CampaignLock::CampaignLock(const fs::path& campaign)
    : file_(open((campaign / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  if (file_ >= 0) close(file_);
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} is in use by another memfathom fleet; wait for it, or name another "
                          "--folder",
                          campaign.string()));
}

CampaignLock::~CampaignLock() { close(file_); }

std::string device_for(std::string pattern, const std::string& type, const std::string& node) {
  const auto replace = [&](std::string_view mark, const std::string& value) {
    for (std::size_t at = pattern.find(mark); at != std::string::npos;
         at = pattern.find(mark, at + value.size()))
      pattern.replace(at, mark.size(), value);
  };
  replace("%t", type.empty() ? "gpu" : type);
  replace("%n", node);
  return pattern;
}

}  // namespace memfathom
