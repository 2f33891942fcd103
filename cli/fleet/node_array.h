// node_array: one task of a job array per node and type of its GPUs, each bound to its node.
#pragma once

#include <string>
#include <vector>

#include "cli/fleet/slurm.h"
#include "cli/fleet/submission.h"

namespace memfathom {

struct ArrayNode {
  std::string name;
  std::string type;       // of the GPU; "gpu" if Slurm names none
  bool is_mixed = false;  // whether the node has GPUs of other types too

  // "n1"; "n1@h100" of a node with several types. Names files, too.
  std::string label() const { return is_mixed ? name + "@" + type : name; }
  // What its task asks Slurm for.
  std::string gres() const { return is_mixed ? "gpu:" + type + ":1" : "gpu:1"; }
};

// A node for each type of its GPUs.
std::vector<ArrayNode> array_nodes_of(const SlurmNode& node);
// Of all healthy nodes with GPUs.
std::vector<ArrayNode> healthy_array_nodes(const std::vector<SlurmNode>& nodes);

struct NodeArray {
  std::string kind;      // of `fleet job`: "bench", "survey"
  std::string campaign;  // its folder: "bench/NAME"
  std::string job_name;
  std::int64_t concurrency = 8;  // tasks that run at once
  Arguments options;             // of `fleet job`: --device, --plant
  Arguments rest;                // what follows "--"
};

// Submits the tasks of the nodes, in several arrays after each other where nodes have GPUs of
// several types, or Slurm allows no array of that size. Tasks are held until each is bound to its
// node, so that none starts elsewhere.
std::vector<TrackedJob> submit_array(const NodeArray& array, const std::vector<ArrayNode>& nodes,
                                     const SubmitOptions& submit, const FleetFolder& folder,
                                     const std::string& database);

// Continues or starts a campaign: tasks with an outcome are kept, queued ones followed, the others
// submitted. Follows them to their ends, except with --no-wait. Nullopt if interrupted.
std::optional<std::vector<TrackedJob>> run_array(
    const NodeArray& array, const std::vector<ArrayNode>& nodes, const SubmitOptions& submit,
    const FleetFolder& folder, const std::string& database, const Context& context);

}  // namespace memfathom
