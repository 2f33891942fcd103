// Tensor: a reference-counted view of a reference-counted storage with autograd metadata, with
// PyTorch's sharing semantics.
#pragma once

#include <cstdint>

#include "core/component.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/framework/device/operand.h"
#include "kernels/framework/tensor/ledger.h"
#include "kernels/framework/tensor/ref.h"
#include "kernels/memory/allocator/allocator.h"

namespace memfathom {

class Session;
class TapeNode;
class Storage;
struct TensorImpl;

// For Ref.
void destroy(TapeNode* node);
void destroy(Storage* storage);
void destroy(TensorImpl* tensor);

// Hooks for sharding and offloading: called before each use of a storage and after a leaf's
// gradient is ready.
class StorageObserver {
 public:
  virtual ~StorageObserver() = default;
  virtual void before_use(Storage& storage) = 0;
  virtual void gradient_ready(TensorImpl& leaf) = 0;
};

// Device memory shared by tensors; freed with the last of them.
class Storage final : public RefCounted {
 public:
  Storage(Session& session, Bytes requested, Component component, ModuleIndex module,
          Allocation allocation);
  // Without memory until restore_memory().
  Storage(Session& session, Bytes size, Component component, ModuleIndex module);
  ~Storage();

  Session& session() const { return *session_; }
  void* data() const { return allocation_.data(); }
  std::int64_t accounted_bytes() const { return allocation_.bytes.count(); }
  Component component() const { return component_; }
  // What it counts for: a saved temporary is an activation.
  Component accounted_component() const;

  // For IterationReplay: which of the session's storages it is, in the order of their making, and
  // its memory, which a replay exchanges or has freed.
  std::uint64_t birth() const { return birth_; }
  Bytes requested() const { return requested_; }
  const Allocation& allocation() const { return allocation_; }
  void rebind(const Allocation& allocation) { allocation_ = allocation; }
  void forget() { resident_ = false; }

  // Sets what the memory is for from now on, e.g. when a buffer becomes a gradient.
  void set_component(Component component);
  // Called when the tape saves it: a saved temporary counts as an activation.
  void add_saved();
  void remove_saved();

  // Frees the memory while the storage and its tensors stay (PyTorch's resize_(0)), and allocates
  // it again, on the session's current stream.
  void release_memory();
  void restore_memory();
  bool resident() const { return resident_; }
  ModuleIndex module() const { return module_; }

  StorageObserver* storage_observer() const { return storage_observer_; }
  void set_storage_observer(StorageObserver* storage_observer) {
    storage_observer_ = storage_observer;
  }

 private:
  Session* session_;
  Allocation allocation_;
  Component component_;
  ModuleIndex module_;
  bool resident_ = true;
  std::uint32_t saved_ = 0;
  Bytes size_;       // the size restore_memory() allocates
  Bytes requested_;  // the size it was made with
  std::uint64_t birth_;
  StorageObserver* storage_observer_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  const Shape& shape() const;
  const Shape& strides() const;
  std::int64_t size(int dim) const { return shape()[dim]; }
  int rank() const { return shape().rank(); }
  std::int64_t elements() const { return shape().elements(); }
  DType dtype() const;
  Session& session() const;
  Operand operand() const;
  bool is_contiguous() const;
  bool shares_storage_with(const Tensor& other) const;

  // Set on leaves; results inherit it.
  bool requires_grad() const;
  void set_requires_grad(bool value);
  const Tensor& grad() const;
  void set_grad(Tensor grad);

  // The same memory without history.
  Tensor detach() const;
  // The same storage with other extents and strides; no history.
  Tensor alias(const Shape& shape, const Shape& strides, std::int64_t offset) const;

  void reset() { impl_.reset(); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }

 private:
  Ref<TensorImpl> impl_;
};

struct TensorImpl final : public RefCounted {
  ~TensorImpl();

  Ref<Storage> storage;
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;  // in elements
  DType dtype = DType::kFp32;
  bool requires_grad = false;
  std::uint32_t output_number = 0;  // which output of grad_fn this is
  Ref<TapeNode> grad_fn;            // the node that created it, if it has history
  TapeNode* accumulator =
      nullptr;  // of a leaf: the node that accumulates its gradient, while a graph holds it
  Tensor grad;  // of a leaf
};

// Row-major strides of a contiguous tensor.
Shape contiguous_strides(const Shape& shape);
// Strides of [N, C, spatial...] in the channels-last order.
Shape channels_last_strides(const Shape& shape);
// Whether the elements cover one memory range exactly once, in any order of dimensions.
bool is_dense(const Shape& shape, const Shape& strides);

inline const Shape& Tensor::shape() const { return impl_->shape; }
inline const Shape& Tensor::strides() const { return impl_->strides; }
inline DType Tensor::dtype() const { return impl_->dtype; }
inline Session& Tensor::session() const { return impl_->storage->session(); }
inline bool Tensor::requires_grad() const { return impl_->requires_grad; }

// Called before an operation reads this tensor.
inline void notify_before_use(const Tensor& tensor) {
  if (!tensor) return;
  Storage& storage = *tensor.impl()->storage;
  if (storage.storage_observer() != nullptr) storage.storage_observer()->before_use(storage);
}

inline const Tensor& Tensor::grad() const { return impl_->grad; }

}  // namespace memfathom
