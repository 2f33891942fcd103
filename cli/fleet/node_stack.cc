#include "cli/fleet/node_stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/regression/changes.h"

namespace memfathom {

std::vector<StackChange> stack_differences(const Environment& calibrated, const Environment& seen) {
  std::vector<StackChange> changes = stack_changes(calibrated, seen);
  const bool same_framework = calibrated.framework == seen.framework;
  std::erase_if(changes, [&](const StackChange& change) {
    return same_framework ? change.key == "os" : change.key != "driver";
  });
  return changes;
}

std::vector<NodeStatus> node_statuses(const std::vector<SlurmNode>& nodes,
                                      const std::vector<FleetCalibration>& calibrations,
                                      const std::vector<SeenNode>& seen) {
  std::vector<NodeStatus> statuses;
  for (const SlurmNode& node : nodes) {
    for (const GresGpus& gpus : node.gpus) {
      NodeStatus status{node, gpus, CalibrationState::kNotCalibrated, {}, {}, {}};
      const std::string type = gpus.type.empty() ? "gpu" : gpus.type;
      const auto at = std::find_if(seen.begin(), seen.end(), [&](const SeenNode& one) {
        return one.node == node.name && (one.type == type || one.type == gpus.type);
      });
      if (at != seen.end()) status.seen = *at;
      if (const FleetCalibration* newest = newest_of(calibrations, type)) {
        status.calibration = *newest;
        status.state = CalibrationState::kNotSeen;
        if (status.seen) {
          status.changes =
              stack_differences(newest->calibration.environment, status.seen->environment);
          status.state =
              status.changes.empty() ? CalibrationState::kCalibrated : CalibrationState::kStale;
        }
      }
      statuses.push_back(std::move(status));
    }
  }
  return statuses;
}

std::string in_words(const std::vector<StackChange>& changes) {
  std::vector<std::string> parts;
  for (const StackChange& change : changes) {
    parts.push_back(fmt::format("{} {} → {}", change.name, change.before, change.after));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace memfathom
