// slurm: what a Slurm cluster says about its nodes and jobs, through its own commands.
//
// Every function throws Error(kEnvironment) with Slurm's own message if a command fails.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

// GPUs of one type: "a100", or "" where the cluster's gres.conf names no type.
struct GresGpus {
  std::string type;
  int count = 1;

  bool operator==(const GresGpus&) const = default;
};

// The GPUs of a list of generic resources as Slurm writes it: "gpu:a100:4(S:0-1),mps:200",
// "gres:gpu:2", "gres/gpu:h100=1". Other resources are left out; so is what cannot be read.
std::vector<GresGpus> gpus_in_gres(std::string_view gres);

struct SlurmNode {
  std::string name;
  std::string state;   // as sinfo prints it: "idle", "down*"
  std::string reason;  // why it is down or drained; empty if Slurm names none
  std::vector<GresGpus> gpus;

  bool is_healthy() const;  // accepts jobs now or once it is free
};

// The lines of `sinfo -h -N -o "%N|%T|%G|%E"`: one node each, several times if it is in several
// partitions. Throws Error(kEnvironment) for a line of another form.
std::vector<SlurmNode> nodes_in(std::string_view sinfo_output);
// The nodes of a partition, or of all if it is empty, in Slurm's order.
std::vector<SlurmNode> slurm_nodes(const std::string& partition);

struct SlurmJobState {
  std::string state;   // "PENDING", "RUNNING", "COMPLETED", ...
  std::string reason;  // why it waits
  std::string node;
};
// The jobs of these names that Slurm remembers, by id; tasks of an array as "12_3".
std::map<std::string, SlurmJobState> jobs_named(const std::string& names);

// Submits and returns the id. `options` are sbatch's, `words` the script and its arguments.
std::string submit_job(const std::vector<std::string>& options,
                       const std::vector<std::string>& words);
// How many tasks an array may have: MaxArraySize of `scontrol show config`.
std::size_t max_array_size();
// The value in its output; Slurm's default, 1001, if it says none.
std::size_t max_array_size_in(std::string_view config);
void cancel_job(const std::string& id);
// Sets properties of a job or a node: {"JobId=12_3", "ReqNodeList=n1"}.
void scontrol_update(const std::vector<std::string>& properties);
void release_job(const std::string& id);

// Whether a word may be part of a Slurm name or list (partition, node, account): letters, digits
// and ". _ - + @ ," and no leading hyphen or dot, at most 255.
bool is_slurm_word(std::string_view word);
// Throws Error(kUsage) naming the option unless is_slurm_word.
void require_slurm_word(const char* option, std::string_view word);

}  // namespace memfathom
