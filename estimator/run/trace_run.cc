#include "estimator/run/trace_run.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/run/simulated_memory.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/efficient_attention.h"
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

Bytes size_of(DType type) { return Bytes{bits_of(type) / 8}; }

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

// What the recording had to assume is said, and what depends on it widens the interval.
void note_guesses(const Trace& trace, DryRun& run) {
  Bytes unsure;
  if (!trace.interpolation.empty()) run.assumptions.push_back(trace.interpolation);
  for (const Trace::Guess& guess : trace.guesses) {
    run.assumptions.push_back(
        guess.times > 1
            ? fmt::format("recorded with a guess, {} times: {}", guess.times, guess.what)
            : fmt::format("recorded with a guess: {}", guess.what));
    unsure += guess.bytes;
  }
  run.reserved_uncertainty = unsure;
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
    std::size_t transform = 0;
    std::size_t attention = 0;
    std::size_t next_span = 0;
    std::size_t next_pool = 0;
    uses_cudnn = trace_.has_recurrent_layers;
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
      if (next_pool < trace_.pools.size() && trace_.pools[next_pool].first_event <= i)
        allocator_.use_private_pool(trace_.pools[next_pool++].pool);
      const std::string& operation = trace_.label_of(i).name;
      const bool multiplies = policy_.count_workspaces && is_gemm(operation);
      if (multiplies && policy_.keeps_cublas_workspace) keep_gemm_workspaces(operation);
      held_[event.slot] = take(Bytes{event.bytes}, component_of(trace_, i, *span_), event.stream);
      if (multiplies) use_gemm_workspace(operation);
      for (;
           convolution < trace_.convolutions.size() && trace_.convolutions[convolution].event == i;
           ++convolution) {
        uses_cudnn = asks_cudnn = true;
        if (!policy_.count_workspaces) continue;
        const Bytes bytes = workspaces_.convolution(trace_.convolutions[convolution].query).bytes;
        Held workspace = take(bytes, Component::kWorkspaceCudnn, event.stream);
        release(workspace);
      }
      for (; transform < trace_.transforms.size() && trace_.transforms[transform].event == i;
           ++transform) {
        run_transform(trace_.transforms[transform].query, event.stream);
      }
      for (; attention < trace_.attentions.size() && trace_.attentions[attention].event == i;
           ++attention) {
        run_attention(trace_.attentions[attention].call, event.stream);
      }
    }
  }

  Ledger ledger;
  bool uses_cublas = false;
  bool uses_cudnn = false;
  bool asks_cudnn = false;
  bool uses_cufft = false;

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
    if (held.allocation.bytes == Bytes{}) return;
    ledger.remove(held.component, 0, held.allocation.bytes.count());
    allocator_.free(held.allocation);
    held.allocation = {};
  }

  // A complex-to-real transform overwrites its input, so PyTorch copies it.
  void run_transform(const FftQuery& query, int stream) {
    uses_cufft = true;
    if (!policy_.count_workspaces) return;
    Held copied;
    if (query.kind == FftKind::kComplexToReal) {
      Bytes bytes = 2 * size_of(query.dtype) * query.batch;
      for (int i = 0; i < query.extents.rank(); ++i) {
        const bool is_halved = i == query.extents.rank() - 1;
        bytes *= is_halved ? query.extents[i] / 2 + 1 : query.extents[i];
      }
      copied = take(bytes, Component::kTemporaries, stream);
    }
    Held workspace = take(workspaces_.fft(query).bytes, Component::kWorkspaceCufft, stream);
    release(workspace);
    release(copied);
  }

  // The buffers that backward kernels allocate in C++, where no dispatcher sees them: flash
  // attention's row sums and fp32 accumulator of dq (and dk, dv of every query head if heads are
  // grouped), the memory-efficient kernel's row sums and workspace.
  void run_attention(const TraceAttention& call, int stream) {
    const Shape& q = call.query.q;
    const Shape& k = call.query.k;
    constexpr std::int64_t kMaxCudnnHeadSize = 128;
    if (call.is_flash && policy_.prefers_cudnn_attention && q[3] <= kMaxCudnnHeadSize)
      uses_cudnn = true;
    if (!call.query.backward || !policy_.count_workspaces) return;
    const auto temporary = [&](Bytes bytes) {
      return take(bytes, Component::kTemporaries, stream);
    };
    // Bytes multiply with a check for overflow: extents come from a file.
    const Bytes per_query = size_of(DType::kFp32) * q[0] * q[1];
    std::vector<Held> held;
    if (call.is_flash) {
      const Bytes rows = per_query * ((q[2] + 127) / 128 * 128);
      held.push_back(temporary(rows));
      held.push_back(temporary(rows * ((q[3] + 31) / 32 * 32)));
      if (q[1] != k[1]) {
        const Bytes expanded = size_of(call.query.dtype) * k[0] * k[2] * q[1] * k[3];
        held.push_back(temporary(expanded));
        held.push_back(temporary(expanded));
      }
    } else {
      const EfficientAttentionBackward sizes =
          efficient_attention_backward(policy_, call.query.dtype, q, k);
      Held products = temporary(sizes.products);
      held.push_back(temporary(sizes.row_sums));
      release(products);
      held.push_back(temporary(sizes.workspace));
    }
    for (Held& one : held) release(one);
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
  run.uses_cudnn = replayer.uses_cudnn;
  run.asks_cudnn = replayer.asks_cudnn;
  run.uses_cufft = replayer.uses_cufft;
  note_guesses(trace, run);
  return run;
}

}  // namespace memfathom
