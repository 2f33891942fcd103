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

constexpr Bytes kBroadcastBucket{std::int64_t{250} << 20};
constexpr std::size_t kBroadcastsInFlight = 2;

// bitsandbytes keeps the scales of a quantised weight beside the parameter, where FSDP does not see
// them: every rank has them all.
bool is_statistic(const NamedTensor& parameter) { return parameter.name.ends_with("absmax"); }

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
  for (const NamedTensor& parameter : parameters) {
    if (is_statistic(parameter)) {
      parameter.tensor.impl()->storage->bring_back();
    } else {
      by_block[parameter.block].push_back(parameter.tensor);
    }
  }
  for (const auto& [block, tensors] : by_block) {
    Unit unit;
    unit.root = block < 0;
    unit.groups = flatten(device_, tensors, this);
    for (const FlatGroup& group : unit.groups) {
      if (group.learns) unit.learning += group.leaves.size();
      unit_of_[&group.storage()] = units_.size();
    }
    units_.push_back(std::move(unit));
  }
  // Blocks are wrapped before what contains them, so the root comes last.
  std::vector<Unit*> in_order;
  for (Unit& unit : units_) in_order.push_back(&unit);
  std::stable_partition(in_order.begin(), in_order.end(), [](Unit* unit) { return !unit->root; });
  for (Unit* unit : in_order) {
    for (const FlatGroup& group : unit->groups) unit->shards.push_back(shard_of(group));
  }
  std::vector<Tensor> optimized;
  for (const Unit& unit : units_) {
    for (std::size_t i = 0; i < unit.groups.size(); ++i) {
      if (unit.groups[i].learns) optimized.push_back(unit.shards[i]);
    }
  }
  return optimized;
}

// What one group's construction leaves. Version 1 brings the parameters to the card one by one,
// copies rank 0's into them by way of buckets, joins them, and cuts its shard from the whole; all
// of it is freed at the end, but the allocator keeps the segments. Version 2 is taken to begin with
// shards, as on the meta device.
Tensor FullySharded::shard_of(const FlatGroup& group) {
  const DType dtype = group.learns ? master_.value_or(group.whole.dtype()) : group.whole.dtype();
  const auto beside = [&](Session& session, std::int64_t elements, Component component) {
    return tensor_beside(group, session, elements, dtype, component);
  };
  const std::int64_t share = share_of(group.elements(), count_);
  if (second_version_) return beside(on_host_ ? host_ : device_, share, group.component());
  std::vector<Tensor> brought;
  for (const Tensor& leaf : group.leaves)
    brought.push_back(beside(device_, leaf.elements(), Component::kTemporaries));
  broadcast(group, brought);
  const Tensor whole = beside(device_, group.elements(), Component::kTemporaries);
  Tensor shard = beside(device_, share, group.component());
  return on_host_ ? beside(host_, share, group.component()) : shard;
}

// Rank 0's values reach the others in joined copies, of which two are on their way at once.
void FullySharded::broadcast(const FlatGroup& group, const std::vector<Tensor>& tensors) {
  std::deque<Tensor> in_flight;
  std::int64_t elements = 0;
  Bytes bucket;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    elements += tensors[i].elements();
    bucket += size_of(tensors[i].shape(), tensors[i].dtype());
    if (bucket < kBroadcastBucket && i + 1 < tensors.size()) continue;
    if (in_flight.size() == kBroadcastsInFlight) in_flight.pop_front();
    in_flight.push_back(
        tensor_beside(group, device_, elements, tensors[i].dtype(), Component::kCommunication));
    elements = 0;
    bucket = Bytes{};
  }
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
