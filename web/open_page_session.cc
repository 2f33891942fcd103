// A session inside a page: published calibrations, fitted workspaces, no GPU and no database.
#include <vector>

#include "api/api_session.h"
#include "core/error.h"
#include "db/published.h"
#include "kernels/workspaces/library_workspaces.h"

namespace memfathom {
namespace {

class PublishedCalibrations : public CalibrationSource {
 public:
  const std::vector<Calibration>& stored() const override { return none_; }
  const std::vector<Calibration>& published() const override { return published_calibrations(); }
  std::string location() const override { return "(none)"; }

 private:
  std::vector<Calibration> none_;
};

class NoGpus : public GpuInventory {
 public:
  LiveGpu find(const std::string& device) const override {
    throw Error(ErrorKind::kEnvironment,
                device + " cannot be queried from a page; specify a GPU with target.gpu");
  }
  std::optional<LiveGpu> first() const override { return std::nullopt; }
};

class PageSession : public ApiSession {
 public:
  PageSession() : estimator_(calibrations_, gpus_, workspaces_) {}
  const Estimator& estimator() const override { return estimator_; }

 private:
  PublishedCalibrations calibrations_;
  NoGpus gpus_;
  LibraryWorkspaces workspaces_;
  Estimator estimator_;
};

}  // namespace

std::unique_ptr<ApiSession> open_session(const Node& options) {
  options.check_keys({"database", "live_gpus"});
  if (const Node* database = options.find("database"); database != nullptr && !database->is_null())
    database->refuse("a page has no database; leave it out");
  if (const Node* live = options.find("live_gpus"); live != nullptr && live->as_bool())
    live->refuse("a page cannot query GPUs; leave it out");
  return std::make_unique<PageSession>();
}

}  // namespace memfathom
