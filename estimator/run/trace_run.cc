#include "estimator/run/trace_run.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/run/simulated_memory.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

bool is_gemm(std::string_view operation) {
  for (const std::string_view name : {"addmm", "mm", "bmm", "baddbmm", "matmul", "linear"}) {
    const std::size_t at = operation.rfind(name);
    if (at != std::string_view::npos && at + name.size() == operation.size() &&
        (at == 0 || operation[at - 1] == '.' || operation[at - 1] == ':')) {
      return true;
    }
  }
  return false;
}

// Of these, the one that cuBLASLt computes.
bool has_bias(std::string_view operation) { return operation.ends_with("addmm"); }

// What a storage is for, when the trace does not say it: by the phase in which it was made.
Component component_of(const Trace& trace, std::size_t event, const Trace::Span& span) {
  const std::string& tag = trace.label_of(event).tag;
  if (const std::optional<Component> named = enum_from_name<Component>(tag)) return *named;
  if (span.phase == "load" || span.phase == "model" || span.phase == "init")
    return Component::kParameters;
  if (span.phase == "step") return Component::kOptimizerState;
  return span.phase == "forward" ? Component::kActivations : Component::kTemporaries;
}

class Replayer {
 public:
  Replayer(const Trace& trace, Allocator& allocator, const WorkspaceModel& workspaces,
           const FrameworkPolicy& policy)
      : trace_(trace),
        allocator_(allocator),
        workspaces_(workspaces),
        policy_(policy),
        held_(trace.slots) {}

  void go() {
    std::size_t convolution = 0;
    std::size_t next_span = 0;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      while (next_span < trace_.spans.size() && trace_.spans[next_span].first_event <= i) {
        span_ = &trace_.spans[next_span++];
        ledger.begin_phase(span_->phase, span_->iteration);
      }
      const Trace::Event& event = trace_.events[i];
      if (event.is_free()) {
        release(held_[event.slot]);
        continue;
      }
      const std::string& operation = trace_.label_of(i).name;
      const bool multiplies = policy_.count_workspaces && is_gemm(operation);
      if (multiplies && policy_.keeps_cublas_workspace) keep_gemm_workspaces(operation);
      held_[event.slot] = take(Bytes{event.bytes}, component_of(trace_, i, *span_), event.stream);
      if (multiplies) use_gemm_workspace(operation);
      for (;
           convolution < trace_.convolutions.size() && trace_.convolutions[convolution].event == i;
           ++convolution) {
        uses_cudnn = true;
        if (!policy_.count_workspaces) continue;
        const Bytes bytes = workspaces_.convolution(trace_.convolutions[convolution].query).bytes;
        Held workspace = take(bytes, Component::kWorkspaceCudnn, event.stream);
        release(workspace);
      }
    }
  }

  Ledger ledger;
  bool uses_cublas = false;
  bool uses_cudnn = false;

 private:
  struct Held {
    Allocation allocation;
    Component component = Component::kTemporaries;
  };

  Held take(Bytes bytes, Component component, int stream) {
    Held held{allocator_.allocate(bytes, stream), component};
    ledger.note_reserved(allocator_.statistics().reserved_bytes.all.current);
    ledger.add(component, 0, held.allocation.bytes.count());
    return held;
  }

  void release(Held& held) {
    ledger.remove(held.component, 0, held.allocation.bytes.count());
    allocator_.free(held.allocation);
    held.allocation = {};
  }

  bool has_own_epilogue(std::string_view operation) const {
    return has_bias(operation) && policy_.cublaslt_workspace.count() > 0;
  }

  // One per thread: autograd's has its own from the first backward on.
  void keep_gemm_workspaces(std::string_view operation) {
    const bool backward = span_->phase == "backward";
    if (!std::exchange(cublas_kept_[backward], true))
      take(policy_.cublas_workspace, Component::kWorkspaceCublas, 0);
    if (policy_.keeps_cublaslt_workspace && has_own_epilogue(operation) &&
        !std::exchange(cublaslt_kept_[backward], true))
      take(policy_.cublaslt_workspace, Component::kWorkspaceCublas, 0);
  }

  // The workspace that is allocated for one call, after its result.
  void use_gemm_workspace(std::string_view operation) {
    uses_cublas = true;
    const bool epilogue = has_own_epilogue(operation);
    if (epilogue ? policy_.keeps_cublaslt_workspace : policy_.keeps_cublas_workspace) return;
    Held workspace = take(epilogue ? policy_.cublaslt_workspace : policy_.cublas_workspace,
                          Component::kWorkspaceCublas, 0);
    release(workspace);
  }

  const Trace& trace_;
  Allocator& allocator_;
  const WorkspaceModel& workspaces_;
  const FrameworkPolicy& policy_;
  std::vector<Held> held_;
  const Trace::Span* span_ = nullptr;
  std::array<bool, 2> cublas_kept_{};    // by the forward and the backward thread
  std::array<bool, 2> cublaslt_kept_{};  // likewise
};

}  // namespace

DryRun run_trace(const Job& job, const DryRunOptions& options) {
  const Trace& trace = *job.model.trace();
  DryDevice device;
  SimulatedMemory memory(job, options);
  const WorkspaceModel& workspaces =
      options.workspaces != nullptr ? *options.workspaces : device.workspaces();
  Timeline unused;
  WatchedAllocator watched(memory.allocator(),
                           options.timeline != nullptr ? *options.timeline : unused);
  Replayer replayer(
      trace, options.timeline != nullptr ? static_cast<Allocator&>(watched) : memory.allocator(),
      workspaces, memory.policy());
  watched.watch(replayer.ledger);
  replayer.go();
  DryRun run;
  note_peaks(replayer.ledger, memory.allocator().statistics(), run);
  run.uses_cublas = replayer.uses_cublas;
  run.uses_cudnn = run.asks_cudnn = replayer.uses_cudnn;
  return run;
}

}  // namespace memfathom
