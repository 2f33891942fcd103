// NoMachine: an estimator without calibrations, GPUs and cuDNN, for fuzzing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/calibration_source.h"
#include "core/error.h"
#include "core/live_gpu.h"
#include "core/workspace_source.h"
#include "estimator/session/estimator.h"

namespace memfathom {

class NoMachine final : CalibrationSource, GpuInventory, WorkspaceSource {
 public:
  const Estimator& estimator() const { return estimator_; }

 private:
  const std::vector<Calibration>& stored() const override { return none_; }
  const std::vector<Calibration>& published() const override { return none_; }
  std::string location() const override { return "nowhere"; }
  LiveGpu find(const std::string&) const override {
    throw Error(ErrorKind::kEnvironment, "no GPU exists here");
  }
  std::optional<LiveGpu> first() const override { return std::nullopt; }
  OpenedWorkspaces open(const WorkspaceRequirement&) const override { return {}; }

  std::vector<Calibration> none_;
  Estimator estimator_{*this, *this, *this};
};

}  // namespace memfathom
