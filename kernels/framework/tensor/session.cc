#include "kernels/framework/tensor/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/framework/device/calls.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {

Session::~Session() {
  autocast_cache.clear();
  gemm_workspaces_.clear();
}

void Session::release(const Allocation& allocation) noexcept {
  try {
    allocator_.free(allocation);
  } catch (const std::bad_alloc&) {
    is_exhausted_ = true;
  }
}

void Session::refuse_tensors() {
  throw Error(ErrorKind::kInput,
              fmt::format("a replay of this job makes more than {} million tensors, which would "
                          "take minutes; ask for fewer new tokens, frames, rows, modules or layers",
                          kMostTensors / 1'000'000));
}

Allocation Session::take(Bytes bytes) {
  if (is_exhausted_) throw std::bad_alloc();
  const Allocation allocation = allocator_.allocate(bytes, stream);
  ledger_.note_reserved(allocator_.statistics().reserved_bytes.all.current);
  return allocation;
}

Ref<Storage> Session::allocate(Bytes bytes, Component for_what) {
  return make_ref<Storage>(*this, bytes, for_what, module, take(bytes));
}

Tensor Session::deferred(const Shape& shape, DType dtype) {
  count_tensor();
  Ref<TensorImpl> made = make_ref<TensorImpl>();
  made->storage = make_ref<Storage>(*this, size_of(shape, dtype), component, module);
  made->shape = shape;
  made->strides = contiguous_strides(shape);
  made->dtype = dtype;
  return Tensor(std::move(made));
}

Tensor Session::empty(const Shape& shape, DType dtype) {
  return empty_strided(shape, contiguous_strides(shape), dtype);
}

Tensor Session::empty_strided(const Shape& shape, const Shape& strides, DType dtype) {
  count_tensor();
  Ref<TensorImpl> made = make_ref<TensorImpl>();
  made->storage = allocate(size_of(shape, dtype), component);
  made->shape = shape;
  made->strides = strides;
  made->dtype = dtype;
  return Tensor(std::move(made));
}

Tensor Session::zeros(const Shape& shape, DType dtype) { return full(shape, dtype, 0); }

Tensor Session::full(const Shape& shape, DType dtype, double value) {
  Tensor made = empty(shape, dtype);
  if (computes())
    device_.run(ElementwiseCall{Elementwise::kFill, made.operand(), {}, {}, {}, {value}});
  return made;
}

Tensor Session::workspace(Bytes bytes, Component for_what) {
  if (!policy_.count_workspaces || bytes.count() == 0) return {};
  const ComponentScope scope(*this, for_what);
  return empty({bytes.count()}, DType::kUint8);
}

Tensor Session::kernel_temporary(const Shape& shape, DType dtype) {
  if (!policy_.count_workspaces) return {};
  return empty(shape, dtype);
}

// Belongs to no module: the allocation would be charged to whichever module multiplies first.
Tensor Session::gemm_workspace(Bytes bytes) {
  const ModuleIndex current = std::exchange(module, ModuleIndex{0});
  Tensor memory = workspace(bytes, Component::kWorkspaceCublas);
  module = current;
  return memory;
}

void Session::keep_gemm_workspace(Bytes bytes, bool epilogue) {
  for (const GemmWorkspace& taken : gemm_workspaces_) {
    if (taken.backward_thread == in_backward && taken.epilogue == epilogue) return;
  }
  Tensor memory = gemm_workspace(bytes);
  // Also called without a workspace, so that the device drops one that an earlier session freed.
  // The device has one for both libraries: cuBLAS's, which is the larger.
  if (computes() && !epilogue) device_.set_gemm_workspace(memory ? memory.operand() : Operand{});
  gemm_workspaces_.push_back({in_backward, epilogue, std::move(memory)});
}

Tensor Session::before_gemm(bool with_epilogue) {
  used_cublas_ = true;
  const bool has_own_epilogue = with_epilogue && policy_.cublaslt_workspace.count() > 0;
  if (!policy_.keeps_cublas_workspace) {
    Tensor memory =
        gemm_workspace(has_own_epilogue ? policy_.cublaslt_workspace : policy_.cublas_workspace);
    if (computes()) device_.set_gemm_workspace(memory ? memory.operand() : Operand{});
    return memory;
  }
  // cuBLASLt's handle is cuBLAS's, and getting it allocates cuBLAS's workspace.
  keep_gemm_workspace(policy_.cublas_workspace, false);
  if (!has_own_epilogue) return {};
  if (!policy_.keeps_cublaslt_workspace) return gemm_workspace(policy_.cublaslt_workspace);
  keep_gemm_workspace(policy_.cublaslt_workspace, true);
  return {};
}

namespace {

// The newest first, whatever the order of their addresses: the allocator's blocks depend on it.
void drop_casts(Session& session) {
  std::vector<Tensor> casts;
  try {
    casts.reserve(session.autocast_cache.size());
  } catch (const std::bad_alloc&) {
    session.autocast_cache.clear();  // a destructor calls: in any order, then
    return;
  }
  for (auto& [leaf, cast] : session.autocast_cache) casts.push_back(std::move(cast.second));
  session.autocast_cache.clear();
  std::sort(casts.begin(), casts.end(), [](const Tensor& a, const Tensor& b) {
    return a.impl()->storage->birth() > b.impl()->storage->birth();
  });
  for (Tensor& cast : casts) cast.reset();
}

}  // namespace

AutocastScope::AutocastScope(Session& session, std::optional<DType> dtype)
    : session_(session), before_(session.autocast) {
  session_.autocast = dtype;
}

AutocastScope::~AutocastScope() {
  session_.autocast = before_;
  if (!before_) drop_casts(session_);
}

}  // namespace memfathom
