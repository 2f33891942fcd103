// JobRunner: runs jobs for the profiler, which cannot parse them; the cli implements it with the
// estimator's models.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "kernels/framework/tensor/session.h"
#include "profiler/library_use.h"

namespace memfathom {

// What a dry run predicts for a job before it is measured.
struct Forecast {
  Bytes reserved;
  LibraryUse uses;
};

class JobRunner {
 public:
  // "tensors" once the model is built, "step" after each iteration.
  using StageCallback = std::function<void(std::string_view stage)>;

  virtual ~JobRunner() = default;

  // Jobs are JSON (docs/contract.md §3).
  virtual Forecast forecast(const std::string& job) const = 0;
  virtual void run(Session& session, const std::string& job,
                   const StageCallback& reached) const = 0;
  // The policy that the session imitates on such a device.
  virtual FrameworkPolicy policy(const Environment& environment) const = 0;
};

}  // namespace memfathom
