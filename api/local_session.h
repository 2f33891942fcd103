// LocalSession: an Estimator connected to this machine: a calibration database, GPUs through NVML,
// and cuDNN workspaces. All commands and the public API use it.
//
// Thread-safe after construction.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/live_gpu.h"
#include "db/database_calibrations.h"
#include "estimator/session/estimator.h"
#include "kernels/workspaces/library_workspaces.h"

namespace memfathom {

struct SessionOptions {
  // If absent or nonexistent, only published calibrations are available.
  std::optional<std::filesystem::path> database;
  bool live_gpus = true;  // false: this machine's GPUs are never queried
};

class LocalSession {
 public:
  explicit LocalSession(const SessionOptions& options);
  explicit LocalSession(const std::optional<std::filesystem::path>& database)
      : LocalSession(SessionOptions{database, true}) {}
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;

  const Estimator& estimator() const { return estimator_; }

 private:
  DatabaseCalibrations calibrations_;
  std::unique_ptr<GpuInventory> gpus_;
  LibraryWorkspaces workspaces_;
  Estimator estimator_;
};

}  // namespace memfathom
