// node_array: one task of a job array per node, each bound to its node.
#pragma once

#include <string>
#include <vector>

#include "cli/fleet/submission.h"

namespace memfathom {

struct ArrayNode {
  std::string name;
  std::string type;  // of its GPU; empty if Slurm names none
};

struct NodeArray {
  std::string kind;      // of `fleet job`: "bench", "survey"
  std::string campaign;  // its folder: "bench/NAME"
  std::string job_name;
  std::int64_t concurrency = 8;  // tasks that run at once
  Arguments options;             // of `fleet job`: --device, --plant
  Arguments rest;                // what follows "--"
};

// Submits the tasks of the nodes. Tasks are held until each is bound to its node, so that none
// starts elsewhere.
std::vector<TrackedJob> submit_array(const NodeArray& array, const std::vector<ArrayNode>& nodes,
                                     const SubmitOptions& submit, const FleetFolder& folder,
                                     const std::string& database);

// Continues or starts a campaign: tasks with an outcome are kept, queued ones followed, the others
// submitted. Follows them to their ends, except with --no-wait. Nullopt if interrupted.
std::optional<std::vector<TrackedJob>> run_array(
    const NodeArray& array, const std::vector<ArrayNode>& nodes, const SubmitOptions& submit,
    const FleetFolder& folder, const std::string& database, const Context& context);

}  // namespace memfathom
