// Session: one run of layers on one device: memory, accounting and modes. One thread owns
// everything in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/workspace.h"
#include "kernels/framework/device/device.h"
#include "kernels/framework/tensor/framework_policy.h"
#include "kernels/framework/tensor/ledger.h"
#include "kernels/framework/tensor/tensor.h"
#include "kernels/memory/allocator/allocator.h"

namespace memfathom {

class CheckpointFrame;
class IterationReplay;

class Session {
 public:
  // `workspaces` models the libraries' workspaces; pass the device's own for a real device.
  Session(Device& device, Allocator& allocator, const WorkspaceModel& workspaces,
          FrameworkPolicy policy)
      : device_(device), allocator_(allocator), workspaces_(workspaces), policy_(policy) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Device& device() { return device_; }
  bool computes() const { return computes_; }
  Allocator& allocator() { return allocator_; }
  const WorkspaceModel& workspaces() const { return workspaces_; }
  const FrameworkPolicy& policy() const { return policy_; }
  Ledger& ledger() { return ledger_; }

  // A new tensor, contents undefined. Its component is the current one (see ComponentScope).
  Tensor empty(const Shape& shape, DType dtype);
  Tensor empty_strided(const Shape& shape, const Shape& strides, DType dtype);
  Tensor zeros(const Shape& shape, DType dtype);
  Tensor full(const Shape& shape, DType dtype, double value);

  // A tensor without memory until its storage's restore_memory().
  Tensor deferred(const Shape& shape, DType dtype);

  // Temporary bytes for a library or a kernel's host code. Undefined for 0 bytes or if the policy
  // leaves them out.
  Tensor workspace(Bytes bytes, Component component);
  Tensor kernel_temporary(const Shape& shape, DType dtype);

  // Allocates the workspace of a gemm, as the policy says: once for the forward and once for the
  // backward thread, or for this call. Returns what the caller must hold until the gemm has run.
  // `with_epilogue`: the gemm uses cuBLASLt, which has its own workspace under some policies.
  [[nodiscard]] Tensor before_gemm(bool with_epilogue);
  bool used_cublas() const { return used_cublas_; }
  bool used_cudnn() const { return used_cudnn_; }
  // Whether cuDNN was asked for a plan, as for convolutions; attention only loads it.
  bool asked_cudnn() const { return asked_cudnn_; }
  bool used_cufft() const { return used_cufft_; }
  void note_cudnn() { used_cudnn_ = asked_cudnn_ = true; }
  void note_cudnn_attention() { used_cudnn_ = true; }
  void note_cufft() { used_cufft_ = true; }

  std::uint64_t births() const { return births_; }  // of storages
  std::uint64_t next_birth() { return births_++; }
  std::uint64_t next_sequence() { return sequence_++; }
  std::uint64_t next_random_offset() { return random_offset_++; }

  // Modes; changed through the scopes below.
  bool grad_enabled = true;
  bool in_backward = false;
  bool training = true;
  bool adapters_enabled = true;
  bool cudnn_benchmark = false;
  std::optional<DType> autocast;
  std::unordered_map<TensorImpl*, std::pair<Tensor, Tensor>>
      autocast_cache;  // leaf -> (leaf, its cast)
  CheckpointFrame* checkpoint = nullptr;
  Session* offload_session = nullptr;  // holds saved activations until backward; null: this session
  Component component = Component::kTemporaries;
  ModuleIndex module = 0;
  int stream = 0;
  IterationReplay* recorder = nullptr;  // writes down what is allocated and freed
  std::size_t last_graph = 0;  // nodes of the last backward pass: the next has about as many

  Ref<Storage> allocate(Bytes bytes, Component for_what);
  Allocation take(Bytes bytes);
  // Called by destructors: where the allocator's own lists cannot grow, the next take() fails.
  void release(const Allocation& allocation) noexcept;

  // Every tensor and view is counted here before it is made. Throws Error(kInput) beyond a number
  // that no real job comes near: time and memory of a run are bounded by it.
  void count_tensor() {
    if (++tensors_ > kMostTensors) refuse_tensors();
  }

 private:
  Device& device_;
  Allocator& allocator_;
  const WorkspaceModel& workspaces_;
  FrameworkPolicy policy_;
  bool computes_ = device_.computes();
  Ledger ledger_;
  std::uint64_t births_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t random_offset_ = 0;
  bool used_cublas_ = false, used_cudnn_ = false, asked_cudnn_ = false, used_cufft_ = false;
  struct GemmWorkspace {
    bool backward_thread;
    bool epilogue;
    Tensor memory;
  };
  std::vector<GemmWorkspace> gemm_workspaces_;

  static constexpr std::uint64_t kMostTensors = 100'000'000;
  std::uint64_t tensors_ = 0;
  bool is_exhausted_ = false;  // memory was freed that the allocator could not note

  [[noreturn]] static void refuse_tensors();
  Tensor gemm_workspace(Bytes bytes);
  void keep_gemm_workspace(Bytes bytes, bool epilogue);
};

// Sets a value and restores the old one at the end of the scope.
template <typename T>
class Scoped {
 public:
  template <typename U>
  Scoped(T& place, U value) : place_(place), before_(place) {
    place_ = std::move(value);
  }
  ~Scoped() { place_ = std::move(before_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& place_;
  T before_;
};

// Allocations in the scope count for `component`.
class ComponentScope : Scoped<Component> {
 public:
  ComponentScope(Session& session, Component component) : Scoped(session.component, component) {}
};

// torch.no_grad().
class NoGrad : Scoped<bool> {
 public:
  explicit NoGrad(Session& session) : Scoped(session.grad_enabled, false) {}
};

// torch.autocast(device, dtype): the cast cache of weights ends with the outermost scope.
class AutocastScope {
 public:
  AutocastScope(Session& session, std::optional<DType> dtype);
  ~AutocastScope();

 private:
  Session& session_;
  std::optional<DType> before_;
};

}  // namespace memfathom
