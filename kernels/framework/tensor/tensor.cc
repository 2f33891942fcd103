#include "kernels/framework/tensor/tensor.h"

#include <algorithm>
#include <array>

#include "kernels/framework/tensor/iteration_replay.h"
#include "kernels/framework/tensor/segment_recording.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {
namespace {

// Memory that comes and goes while its storage stays is in no recording.
void spoil_recordings(Session& session) {
  if (session.recorder != nullptr) session.recorder->spoil();
  if (SegmentRecording* segment = SegmentRecording::of(session)) segment->spoil();
}

}  // namespace

Storage::Storage(Session& session, Bytes requested, Component component, ModuleIndex module,
                 Allocation allocation)
    : session_(&session),
      allocation_(allocation),
      component_(component),
      module_(module),
      requested_(requested),
      birth_(session.next_birth()) {
  session_->ledger().add(component_, module_, accounted_bytes());
  if (session_->recorder != nullptr) session_->recorder->taken(*this);
  if (SegmentRecording* segment = SegmentRecording::of(*session_)) segment->taken(*this);
}

Storage::Storage(Session& session, Bytes size, Component component, ModuleIndex module)
    : session_(&session),
      component_(component),
      module_(module),
      resident_(false),
      size_(size),
      birth_(session.next_birth()) {
  spoil_recordings(*session_);
}

Storage::~Storage() {
  if (!resident_) return;
  session_->ledger().remove(accounted_component(), module_, accounted_bytes());
  session_->release(allocation_);
  if (session_->recorder != nullptr) session_->recorder->freed(*this);
  if (SegmentRecording* segment = SegmentRecording::of(*session_)) segment->freed(*this);
}

void Storage::release_memory() {
  if (!resident_) return;
  spoil_recordings(*session_);
  session_->ledger().remove(accounted_component(), module_, accounted_bytes());
  session_->release(allocation_);
  if (size_.count() == 0) size_ = allocation_.bytes;
  allocation_ = {};
  resident_ = false;
}

void Storage::restore_memory() {
  if (resident_) return;
  spoil_recordings(*session_);
  allocation_ = session_->take(size_);
  resident_ = true;
  session_->ledger().add(accounted_component(), module_, accounted_bytes());
}

Component Storage::accounted_component() const {
  return component_ == Component::kTemporaries && saved_ > 0 ? Component::kActivations : component_;
}

void Storage::set_component(Component component) {
  const Component before = accounted_component();
  component_ = component;
  session_->ledger().move(before, accounted_component(), module_, accounted_bytes());
  if (session_->recorder != nullptr) session_->recorder->moved(*this, accounted_component());
  if (SegmentRecording* segment = SegmentRecording::of(*session_)) segment->moved(*this, component);
}

void Storage::add_saved() {
  if (SegmentRecording* segment = SegmentRecording::of(*session_)) segment->saved(*this);
  if (saved_++ == 0 && component_ == Component::kTemporaries) {
    session_->ledger().move(Component::kTemporaries, Component::kActivations, module_,
                            accounted_bytes());
    if (session_->recorder != nullptr) session_->recorder->moved(*this, Component::kActivations);
  }
}

void Storage::remove_saved() {
  if (SegmentRecording* segment = SegmentRecording::of(*session_)) segment->unsaved(*this);
  if (--saved_ == 0 && component_ == Component::kTemporaries) {
    session_->ledger().move(Component::kActivations, Component::kTemporaries, module_,
                            accounted_bytes());
    if (session_->recorder != nullptr) session_->recorder->moved(*this, Component::kTemporaries);
  }
}

TensorImpl::~TensorImpl() = default;

void destroy(Storage* storage) { delete storage; }
void destroy(TensorImpl* tensor) { delete tensor; }

Operand Tensor::operand() const {
  if (!defined()) return {};
  auto* base = static_cast<std::byte*>(impl_->storage->data());
  return {base + impl_->offset * bits_of(dtype()) / 8, dtype(), shape(), strides()};
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (size(i) == 1) continue;
    if (strides()[i] != expected) return false;
    expected *= size(i);
  }
  return true;
}

bool Tensor::shares_storage_with(const Tensor& other) const {
  return impl_->storage == other.impl_->storage;
}

void Tensor::set_requires_grad(bool value) { impl_->requires_grad = value; }

void Tensor::set_grad(Tensor grad) { impl_->grad = std::move(grad); }

Tensor Tensor::detach() const { return alias(shape(), strides(), impl_->offset); }

Tensor Tensor::alias(const Shape& shape, const Shape& strides, std::int64_t offset) const {
  session().count_tensor();
  Ref<TensorImpl> view = make_ref<TensorImpl>();
  view->storage = impl_->storage;
  view->shape = shape;
  view->strides = strides;
  view->offset = offset;
  view->dtype = impl_->dtype;
  return Tensor(std::move(view));
}

namespace {

// The stride of the next outer dimension. In an empty tensor strides are arbitrary.
std::int64_t outside(std::int64_t stride, std::int64_t extent) {
  std::int64_t next = 0;
  if (__builtin_mul_overflow(stride, std::max<std::int64_t>(extent, 1), &next)) return stride;
  return next;
}

}  // namespace

Shape contiguous_strides(const Shape& shape) {
  static_cast<void>(shape.elements());  // throws if the count overflows
  Shape strides = shape;
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = outside(stride, shape[i]);
  }
  return strides;
}

Shape channels_last_strides(const Shape& shape) {
  static_cast<void>(shape.elements());
  Shape strides = shape;
  strides[1] = 1;
  std::int64_t stride = std::max<std::int64_t>(shape[1], 1);
  for (int i = shape.rank() - 1; i >= 2; --i) {
    strides[i] = stride;
    stride = outside(stride, shape[i]);
  }
  strides[0] = stride;
  return strides;
}

bool is_dense(const Shape& shape, const Shape& strides) {
  // From the innermost dimension outwards: each stride must equal the size of the dimensions inside
  // it.
  std::int64_t expected = 1;
  std::array<bool, Shape::kMaxRank> seen{};
  for (int round = 0; round < shape.rank(); ++round) {
    int inner = -1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (seen[static_cast<std::size_t>(i)] || shape[i] == 1) continue;
      if (inner < 0 || strides[i] < strides[inner]) inner = i;
    }
    if (inner < 0) return true;
    if (strides[inner] != expected) return false;
    expected *= shape[inner];
    seen[static_cast<std::size_t>(inner)] = true;
  }
  return true;
}

}  // namespace memfathom
