// FleetFolder: the files of a fleet's campaigns on a file system that all nodes share.
//
//   run.sh                 what every job starts: exec "$@"
//   nodes/NODE@TYPE.json   the environment that a job last found on a node
//   calibrate/TYPE.db      the database of a type; TYPE.log, TYPE.outcome.json
//   bench/NAME/NODE.json   the bench file of a node (NODE@TYPE.json if it has several types);
//   NODE.outcome.json, NODE.log
//   .../state.json         the jobs of a campaign that has not ended
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"

namespace memfathom {

// How a job ended, in its own words: the file is written when it has done all it can do.
struct JobOutcome {
  int exit_code = 0;
  std::string node;
  std::string job;       // Slurm's id
  std::string finished;  // ISO 8601, UTC
  std::string message;   // the error; empty if there was none
};

// What a job found on a node.
struct SeenNode {
  std::string node;
  std::string type;  // of its GPU, as Slurm calls it
  std::string job;
  std::string seen;  // ISO 8601, UTC
  Environment environment;
};

// The jobs of a campaign by label (a type or a node), and its further jobs ("merge").
struct CampaignState {
  std::map<std::string, std::string> jobs;
  bool finished = true;
};

class FleetFolder {
 public:
  // Creates the folder if it is missing. Throws Error(kEnvironment).
  explicit FleetFolder(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path script() const { return path_ / "run.sh"; }
  // "calibrate", "bench/NAME", created if missing.
  std::filesystem::path campaign(const std::string& name) const;

  std::vector<SeenNode> seen_nodes() const;
  void write_seen(const SeenNode& seen) const;

 private:
  std::filesystem::path path_;
};

// Nullopt if there is no such file; throws Error(kInput) if it is not what we wrote.
std::optional<JobOutcome> read_outcome(const std::filesystem::path& file);
void write_outcome(const std::filesystem::path& file, const JobOutcome& outcome);

CampaignState read_state(const std::filesystem::path& campaign);
void write_state(const std::filesystem::path& campaign, const CampaignState& state);

// The last line of a job's log that says something; empty without one.
std::string last_line_of(const std::filesystem::path& log);

}  // namespace memfathom
