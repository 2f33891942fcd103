// Dry run: a job's layers on the dry device, its steps played through the allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/component.h"
#include "core/workspace.h"
#include "estimator/job/job.h"
#include "estimator/run/timeline.h"
#include "kernels/framework/tensor/framework_policy.h"
#include "kernels/framework/tensor/ledger.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

struct DryRun {
  std::vector<PhaseRecord> phases;   // in the order of the run, iterations counted from 1
  std::vector<std::string> modules;  // names of the job's modules; [0] is the job itself
  Bytes allocated_peak;              // steady state: from the second iteration on
  Bytes first_allocated_peak;        // first iteration
  Bytes reserved_peak;  // over everything: load, warm-up, first iteration, short last batch
  std::vector<ComponentBytes> at_peak;  // by module, at the allocated peak
  std::int64_t parameter_count = 0;
  std::int64_t trainable_count = 0;
  std::int64_t layers = 0;     // modules that own parameters; 0 of a trace, which names none
  std::string rank;            // the one that is shown, where ranks differ
  Bytes host_peak;             // what offloading puts on the host
  Bytes communication;         // outside the allocator: NCCL's buffers
  Bytes reserved_uncertainty;  // how far the reserved peak lies from either of two replays it
                               // averages
  Bytes reserved_high;         // where lengths vary: the reserved peak that may be reached; else 0
  bool uses_cublas = false, uses_cudnn = false, uses_cufft = false;
  bool asks_cudnn = false;           // for plans, as convolutions do; attention only loads it
  bool lengths_unspecified = false;  // taken as equal, where varying ones would reserve more
  std::int64_t retries = 0;          // times the allocator had to give its cache back
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
  std::vector<std::string> warnings;
};

struct DryRunOptions {
  FrameworkPolicy policy;
  const WorkspaceModel* workspaces = nullptr;  // null: no library asks for any
  // What the GPU has for the allocator; before it fails it gives its cache back. Absent: no limit.
  std::optional<Bytes> device_memory;
  // Who asks only whether the job stays below: once it reserves more, the run ends with
  // OutOfMemory. What it peaks at below is not changed by it. Absent: it runs to its end.
  std::optional<Bytes> ceiling;
  bool replays_blocks = true;    // false: each block runs, to compare with
  Timeline* timeline = nullptr;  // where what is alive from event to event is wanted
  TraceSink* history = nullptr;  // where every allocation and free is wanted
};

DryRun run_dry(const Job& job, const DryRunOptions& options);

// For whoever measures between the parts of a run: "tensors" when the model is built, "step" after
// each iteration.
using StepHook = std::function<void(std::string_view stage)>;

// The same layers and iterations in any session: how a profile runs a job on a real device.
DryRun run_in(Session& session, const Job& job, const StepHook& reached);

}  // namespace memfathom
