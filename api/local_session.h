// LocalSession: an Estimator wired to this machine: the calibrations of a database, its GPUs by
// NVML, and the workspaces of its cuDNN. Every command and the public API answer through one of
// these.
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
  // Absent, or a file that does not exist: only published calibrations are known.
  std::optional<std::filesystem::path> database;
  bool live_gpus = true;  // false: this machine's GPUs are never queried
};

class LocalSession {
 public:
  explicit LocalSession(const SessionOptions& options);
  explicit LocalSession(const std::filesystem::path& database)
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
