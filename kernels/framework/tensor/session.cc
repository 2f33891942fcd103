#include "kernels/framework/tensor/session.h"

#include "core/error.h"
#include "kernels/framework/device/calls.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {

Session::~Session() {
  autocast_cache.clear();
  gemm_workspaces_.clear();
}

Allocation Session::take(Bytes bytes) {
  const Allocation allocation = allocator_.allocate(bytes, stream);
  ledger_.note_reserved(allocator_.statistics().reserved_bytes.all.current);
  return allocation;
}

Ref<Storage> Session::allocate(Bytes bytes, Component for_what) {
  return make_ref<Storage>(*this, take(bytes), for_what, module);
}

Tensor Session::deferred(const Shape& shape, DType dtype) {
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

void Session::before_gemm(bool with_epilogue) {
  used_cublas_ = true;
  const bool own_epilogue = with_epilogue && policy_.cublaslt_workspace.count() > 0;
  for (const GemmWorkspace& taken : gemm_workspaces_) {
    if (taken.backward_thread == in_backward && taken.epilogue == own_epilogue) return;
  }
  const ModuleIndex current = std::exchange(module, ModuleIndex{0});
  Tensor memory = workspace(own_epilogue ? policy_.cublaslt_workspace : policy_.cublas_workspace,
                            Component::kWorkspaceCublas);
  module = current;
  // Also called without a workspace, so that the device drops one that an earlier session freed.
  // The device has one for both libraries; cuBLASLt's is used only until cuBLAS's is allocated.
  if (computes() && (!own_epilogue || gemm_workspaces_.empty()))
    device_.set_gemm_workspace(memory ? memory.operand() : Operand{});
  gemm_workspaces_.push_back({in_backward, own_epilogue, std::move(memory)});
}

AutocastScope::AutocastScope(Session& session, std::optional<DType> dtype)
    : session_(session), before_(session.autocast) {
  session_.autocast = dtype;
}

AutocastScope::~AutocastScope() {
  session_.autocast = before_;
  if (!before_) session_.autocast_cache.clear();
}

}  // namespace memfathom
