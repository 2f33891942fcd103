// node_stack: whether a calibration still describes what runs on a node.
#pragma once

#include <string>
#include <vector>

#include "cli/fleet/fleet_folder.h"
#include "cli/fleet/provenance.h"
#include "cli/fleet/slurm.h"
#include "profiler/regression/compare.h"

namespace memfathom {

// What changed between a calibration and a node. Only the driver is compared if the frameworks
// differ: the libraries of another framework are not visible.
std::vector<StackChange> stack_differences(const Environment& calibrated, const Environment& seen);

enum class CalibrationState { kCalibrated, kStale, kNotCalibrated, kNotSeen };

template <>
inline constexpr auto kEnumNames<CalibrationState> = std::to_array<EnumName<CalibrationState>>(
    {{CalibrationState::kCalibrated, "calibrated"},
     {CalibrationState::kStale, "stale"},
     {CalibrationState::kNotCalibrated, "not calibrated"},
     {CalibrationState::kNotSeen, "calibrated, node not seen"}});

// A node and one type of its GPUs.
struct NodeStatus {
  SlurmNode node;
  GresGpus gpus;
  CalibrationState state = CalibrationState::kNotCalibrated;
  std::optional<FleetCalibration> calibration;  // the newest of the type
  std::optional<SeenNode> seen;
  std::vector<StackChange> changes;
};

std::vector<NodeStatus> node_statuses(const std::vector<SlurmNode>& nodes,
                                      const std::vector<FleetCalibration>& calibrations,
                                      const std::vector<SeenNode>& seen);

// "driver 550.54 → 570.12, cuDNN 9.1 → 9.3"
std::string in_words(const std::vector<StackChange>& changes);

}  // namespace memfathom
