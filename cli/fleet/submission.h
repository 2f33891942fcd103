// submission: jobs of a campaign: how they are submitted, and following them to their ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/fleet/fleet_folder.h"
#include "cli/option_parser.h"

namespace memfathom {

struct SubmitOptions {
  std::optional<std::string> folder, partition, account, qos, reservation, time, program;
  std::vector<std::string> sbatch;  // further options of sbatch: "--constraint=nvlink"
  double interval = 5;              // seconds between two questions to Slurm
  bool no_wait = false;
};
void declare(OptionParser& parser, SubmitOptions& options);
// Throws Error(kUsage) for a value that is no Slurm name, and for bad intervals.
void check(const SubmitOptions& options);

// The folder of --folder, else `fleet` next to the database.
FleetFolder fleet_folder(const std::optional<std::string>& given, const Context& context);

// Options of sbatch for one job of the fleet: its name, its log, and what the user chose.
std::vector<std::string> sbatch_options(const SubmitOptions& options, const std::string& name,
                                        const std::filesystem::path& log);
// The words of a job: run.sh, this program with its database, and `fleet job ARGUMENTS`.
std::vector<std::string> job_words(const SubmitOptions& options, const FleetFolder& folder,
                                   const std::string& database, const Arguments& arguments);

// Throws Error(kUsage) unless 1 to 10000 tasks may run at once.
void require_concurrency(std::int64_t tasks);

enum class JobProgress { kWaiting, kDone, kFailed };

struct TrackedJob {
  std::string label;  // a type or a node
  std::string id;     // Slurm's: "12", "12_3"; empty if nothing was submitted
  std::filesystem::path outcome_file, log;
  JobProgress progress = JobProgress::kWaiting;
  std::string state = "submitted";  // Slurm's, in lower case, or ours: "done", "lost"
  std::string node;
  std::string problem;  // why it failed
  std::optional<JobOutcome> outcome;
  int polls_without_news = 0;
};

// Asks Slurm and reads the outcomes until no job waits. `names` are the jobs' names, separated by
// commas. A controller that does not answer is asked again for ten minutes. False if the user
// interrupted; the jobs go on.
bool follow(std::vector<TrackedJob>& jobs, const std::string& names, double interval,
            const Context& context);

// One campaign of a kind at a time: throws Error(kEnvironment) if another process follows it.
class CampaignLock {
 public:
  explicit CampaignLock(const std::filesystem::path& campaign);
  ~CampaignLock();
  CampaignLock(const CampaignLock&) = delete;
  CampaignLock& operator=(const CampaignLock&) = delete;

 private:
  int file_;
};

// "cuda:0", "virtual:%t": %t is the type of the GPU, %n the name of the node.
std::string device_for(std::string pattern, const std::string& type, const std::string& node);

}  // namespace memfathom
