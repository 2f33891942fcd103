// What FullySharded does while the passes run: gathering, prefetching, reducing.
#include <algorithm>
#include <limits>
#include <utility>

#include "estimator/parallel/fully_sharded.h"

namespace memfathom {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// FSDP gathers and reduces on streams of its own, and the allocator keeps a pool per stream.
constexpr int kGatherStream = 1;
constexpr int kReduceStream = 2;

}  // namespace

void FullySharded::before_forward() {
  order_.clear();
  current_ = kNone;
}

void FullySharded::before_use(Storage& storage) {
  const std::size_t index = unit_of_.at(&storage);
  if (index != current_) enter(index);
}

// A block's parameters go when its forward is over, and when its gradients are reduced; the root's
// stay from its first use to the end of backward.
void FullySharded::enter(std::size_t index) {
  if (!device_.in_backward && current_ != kNone && !units_[current_].root)
    release_memory(units_[current_]);
  current_ = index;
  Unit& unit = units_[index];
  if (device_.in_backward && !unit.root) finish_others(unit);
  if (!device_.in_backward && !unit.root) order_.push_back(index);
  if (!unit.whole) {
    if (unit.gathered.empty()) gather(unit);
    copy_out(unit);
  }
  if (device_.in_backward && !unit.root) prefetch_before(index);
}

// Starts the all-gather. Version 1 writes to the flat parameter itself, version 2 to a buffer.
void FullySharded::gather(Unit& unit) {
  const Scoped<int> stream(device_.stream, kGatherStream);
  std::vector<Tensor> sent;  // the rank's own part, brought from the host or narrowed
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    const FlatGroup& group = unit.groups[i];
    const Tensor& shard = unit.shards[i];
    if (on_host_ || shard.dtype() != group.whole.dtype()) {
      sent.push_back(make_companion_tensor(group, device_, shard.elements(), group.whole.dtype(),
                                           Component::kCommunication));
    }
    if (second_version_) {
      unit.gathered.push_back(make_companion_tensor(group, device_, shard.elements() * count_,
                                                    group.whole.dtype(),
                                                    Component::kCommunication));
    } else {
      group.storage().restore_memory();
    }
  }
  if (limited_) device_.allocator().process_events();
  unit.whole = !second_version_;
}

// Version 2 copies the parameters out of the buffer. In the forward pass the buffer stays until the
// next all-gather is done, so that the two may overlap.
void FullySharded::copy_out(Unit& unit) {
  if (!second_version_) return;
  if (!device_.in_backward) last_gathered_.clear();
  for (const FlatGroup& group : unit.groups) group.storage().restore_memory();
  unit.whole = true;
  std::vector<Tensor> buffers = std::exchange(unit.gathered, {});
  if (!device_.in_backward) last_gathered_ = std::move(buffers);
}

// While a block's backward runs, the one that ran before it in the forward pass is gathered.
void FullySharded::prefetch_before(std::size_t index) {
  const auto found = std::find(order_.rbegin(), order_.rend(), index);
  if (found == order_.rend() || std::next(found) == order_.rend()) return;
  Unit& unit = units_[*std::next(found)];
  if (!unit.whole && unit.gathered.empty()) gather(unit);
}

// What version 1 frees is still read on the compute stream: it counts no longer as allocated, but
// nobody else gets it until the work that was queued is done, at the latest after the next gather
// (the limit of two at once). Without the limit the host is taken to be one pass ahead of the GPU:
// what the forward pass freed is there when backward begins, and the other way round.
void FullySharded::release_memory(Unit& unit) {
  for (const FlatGroup& group : unit.groups) {
    if (!group.storage().resident()) continue;
    group.storage().release_memory();
    if (second_version_) continue;
    Allocator& allocator = device_.allocator();
    const Allocation freed =
        allocator.allocate(size_of(group.whole.shape(), group.whole.dtype()), kGatherStream);
    allocator.record_stream(freed, 0);
    allocator.free(freed);
  }
  unit.whole = false;
}

// The root's backward comes first, and it gathers the last block beforehand.
void FullySharded::before_backward() {
  if (current_ != kNone && !units_[current_].root) release_memory(units_[current_]);
  current_ = kNone;
  if (!limited_) device_.allocator().process_events();
  if (second_version_) last_gathered_.clear();
  if (order_.empty()) return;
  Unit& last = units_[order_.back()];
  if (!last.whole && last.gathered.empty()) gather(last);
}

void FullySharded::gradient_ready(TensorImpl& leaf) {
  Unit& unit = units_[unit_of_.at(leaf.storage.get())];
  if (++unit.arrived == unit.learning) reduce(unit);
}

// Both versions reduce a block when its backward is over, whether or not every parameter took part:
// version 1 when the flat parameter has its gradient, version 2 when the block's input has its own.
// A block's backward is over when another block's begins; what arrives later is reduced at the end.
void FullySharded::finish_others(const Unit& entered) {
  for (Unit& unit : units_) {
    if (&unit == &entered || unit.root || unit.arrived == 0 || unit.arrived >= unit.learning)
      continue;
    reduce(unit);
    unit.arrived = 0;
  }
}

// Version 1 joins the gradients to the flat parameter's while the parameters are there, version 2
// puts them where the reduce-scatter reads them, after the last one's place is free.
void FullySharded::reduce(Unit& unit) {
  if (second_version_) {
    release_memory(unit);
    reduce_buffers_.clear();
  }
  std::vector<Tensor> joined(unit.groups.size());
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    const FlatGroup& group = unit.groups[i];
    if (!group.trainable) continue;
    joined[i] =
        make_companion_tensor(group, device_, unit.shards[i].elements() * count_,
                              second_version_ ? reduce_type(group) : group.whole.dtype(),
                              second_version_ ? Component::kCommunication : Component::kGradients);
    for (Tensor leaf : group.leaves) leaf.set_grad({});
  }
  if (!second_version_) release_memory(unit);
  const Scoped<int> stream(device_.stream, kReduceStream);
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    if (joined[i]) scatter(unit.groups[i], joined[i], unit.shards[i]);
  }
  if (second_version_) reduce_buffers_ = std::move(joined);
}

DType FullySharded::reduce_type(const FlatGroup& group) const {
  return reduce_precision_.value_or(group.whole.dtype());
}

// The rank's part of the sum, in the shard's type at last.
void FullySharded::scatter(const FlatGroup& group, const Tensor& joined, Tensor& shard) {
  const auto beside = [&](Session& session, std::int64_t elements, DType dtype) {
    return make_companion_tensor(group, session, elements, dtype, Component::kGradients);
  };
  Tensor cast;
  if (joined.dtype() != reduce_type(group))
    cast = beside(device_, joined.elements(), reduce_type(group));
  Tensor reduced = beside(device_, shard.elements(), reduce_type(group));
  if (!on_host_ && reduce_type(group) != shard.dtype())
    reduced = beside(device_, shard.elements(), shard.dtype());
  if (shard.grad()) return;  // added to it
  shard.set_grad(on_host_ ? beside(host_, shard.elements(), shard.dtype()) : std::move(reduced));
}

void FullySharded::after_backward() {
  for (Unit& unit : units_) {
    if (unit.arrived > 0 && unit.arrived < unit.learning) reduce(unit);  // parts of it took no part
    unit.arrived = 0;
    unit.gathered.clear();
    release_memory(unit);
  }
  reduce_buffers_.clear();
  device_.allocator().process_events();  // backward ends with waiting for all streams
  current_ = kNone;
}

}  // namespace memfathom
