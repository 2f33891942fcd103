#include "api/local_session.h"

#include "core/error.h"
#include "db/location.h"
#include "profiler/live_gpus.h"

namespace memfathom {
namespace {

class NoGpus : public GpuInventory {
 public:
  LiveGpu find(const std::string& device) const override {
    throw Error(ErrorKind::kEnvironment, device +
                                             " cannot be queried: this session was opened without "
                                             "live GPUs; specify a GPU with target.gpu");
  }
  std::optional<LiveGpu> first() const override { return std::nullopt; }
};

std::unique_ptr<GpuInventory> open_gpus(bool live) {
  if (!live) return std::make_unique<NoGpus>();
  return std::make_unique<MachineGpus>();
}

}  // namespace

LocalSession::LocalSession(const SessionOptions& options)
    : calibrations_(options.database, find_fleet_database_path()),
      gpus_(open_gpus(options.live_gpus)),
      estimator_(calibrations_, *gpus_, workspaces_) {}

}  // namespace memfathom
