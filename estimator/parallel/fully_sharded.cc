#include "estimator/parallel/fully_sharded.h"

#include <algorithm>
#include <limits>
#include <map>

namespace memfathom {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// FSDP gathers and reduces on streams of its own, and the allocator keeps a pool per stream.
constexpr int kGatherStream = 1;
constexpr int kReduceStream = 2;

// Version 1 limits gathers in flight to two; version 2 frees a block before the next is copied out
// of its buffer.
constexpr std::size_t kInFlight[] = {2, 1};

}  // namespace

FullySharded::FullySharded(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      second_version_(job.parallel.fsdp_version == 2),
      on_host_(job.parallel.offload_parameters),
      count_(shard_count(job.parallel)),
      reduce_precision_(job.parallel.reduce_precision),
      current_(kNone) {
  if (job.training.precision.autocast) master_ = job.training.precision.parameters;
}

std::vector<Tensor> FullySharded::adopt(const std::vector<NamedTensor>& parameters) {
  std::map<std::int64_t, std::vector<Tensor>> by_block;
  for (const NamedTensor& parameter : parameters)
    by_block[parameter.block].push_back(parameter.tensor);
  std::vector<Tensor> optimized;
  for (const auto& [block, tensors] : by_block) {
    Unit unit;
    unit.root = block < 0;
    unit.groups = flatten(device_, tensors, this);
    for (const FlatGroup& group : unit.groups) {
      const DType dtype =
          group.learns ? master_.value_or(group.whole.dtype()) : group.whole.dtype();
      Tensor shard = tensor_beside(group, on_host_ ? host_ : device_,
                                   share_of(group.elements(), count_), dtype, group.component());
      if (group.learns) {
        unit.learning += group.leaves.size();
        optimized.push_back(shard);
      }
      unit.shards.push_back(std::move(shard));
      unit_of_[&group.storage()] = units_.size();
    }
    units_.push_back(std::move(unit));
  }
  return optimized;
}

void FullySharded::before_use(Storage& storage) {
  const std::size_t index = unit_of_.at(&storage);
  if (index == current_) return;
  current_ = index;
  Unit& unit = units_[index];
  if (unit.root) {
    gather(unit);
    return;
  }
  in_flight_.erase(std::remove(in_flight_.begin(), in_flight_.end(), index), in_flight_.end());
  in_flight_.push_back(index);
  if (second_version_) {
    // The next buffer is filled while the old one stands, then the old block and buffer go.
    std::vector<Tensor> before = std::move(gather_buffers_);
    gather_buffers_.clear();
    while (in_flight_.size() > kInFlight[1]) {
      let_go(units_[in_flight_.front()]);
      in_flight_.pop_front();
    }
    gather(unit);
    return;
  }
  gather(unit);
  while (in_flight_.size() > kInFlight[0]) {
    let_go(units_[in_flight_.front()]);
    in_flight_.pop_front();
  }
}

void FullySharded::gather(Unit& unit) {
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    const FlatGroup& group = unit.groups[i];
    if (group.storage().resident()) continue;
    const Scoped<int> stream(device_.stream, kGatherStream);
    Tensor brought;  // the rank's own part comes from the host first
    if (on_host_)
      brought = tensor_beside(group, device_, unit.shards[i].elements(), group.whole.dtype(),
                              Component::kCommunication);
    if (second_version_) {
      gather_buffers_.push_back(tensor_beside(group, device_,
                                              share_of(group.elements(), count_) * count_,
                                              group.whole.dtype(), Component::kCommunication));
      const Scoped<int> compute(device_.stream, 0);
      group.storage().bring_back();
      continue;
    }
    group.storage().bring_back();
  }
}

void FullySharded::let_go(Unit& unit) {
  for (const FlatGroup& group : unit.groups) group.storage().let_go();
}

void FullySharded::gradient_ready(TensorImpl& leaf) {
  Unit& unit = units_[unit_of_.at(leaf.storage.get())];
  if (++unit.arrived == unit.learning) reduce(unit);
}

void FullySharded::reduce(Unit& unit) {
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    if (unit.groups[i].learns) reduce_group(unit.groups[i], unit.shards[i]);
  }
}

void FullySharded::reduce_group(const FlatGroup& group, Tensor& shard) {
  const DType reduce_type = reduce_precision_.value_or(group.whole.dtype());
  const std::int64_t padded = share_of(group.elements(), count_) * count_;
  const auto forget = [&] {
    for (Tensor leaf : group.leaves) leaf.set_grad({});
  };
  Tensor input;
  if (second_version_) {
    reduce_buffers_.clear();
    const Scoped<int> stream(device_.stream, kReduceStream);
    input = tensor_beside(group, device_, padded, reduce_type, Component::kCommunication);
    forget();
    reduce_buffers_.push_back(input);
  } else {
    // The gradients are joined to the flat parameter's, in the compute stream; then cast for the
    // reduction.
    input = tensor_beside(group, device_, padded, group.whole.dtype(), Component::kGradients);
    forget();
    const Scoped<int> stream(device_.stream, kReduceStream);
    if (reduce_type != group.whole.dtype()) {
      input = tensor_beside(group, device_, padded, reduce_type, Component::kCommunication);
    }
  }
  const Scoped<int> stream(device_.stream, kReduceStream);
  Tensor reduced =
      tensor_beside(group, device_, shard.elements(), reduce_type, Component::kGradients);
  if (on_host_) {
    if (!shard.grad())
      shard.set_grad(
          tensor_beside(group, host_, shard.elements(), shard.dtype(), Component::kGradients));
    return;
  }
  if (reduce_type != shard.dtype())
    reduced = tensor_beside(group, device_, shard.elements(), shard.dtype(), Component::kGradients);
  if (!shard.grad()) shard.set_grad(std::move(reduced));
}

void FullySharded::after_backward() {
  for (Unit& unit : units_) {
    if (unit.arrived > 0 && unit.arrived < unit.learning) reduce(unit);  // parts of it took no part
    unit.arrived = 0;
    let_go(unit);
  }
  in_flight_.clear();
  gather_buffers_.clear();
  reduce_buffers_.clear();
  current_ = kNone;
}

}  // namespace memfathom
