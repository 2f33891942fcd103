#include "estimator/parallel/fully_sharded.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace memfathom {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

constexpr Bytes kBroadcastBucket{std::int64_t{250} << 20};
constexpr std::size_t kBroadcastsInFlight = 2;

// bitsandbytes keeps the scales of a quantized weight beside the parameter, where FSDP does not see
// them: every rank has them all.
bool is_statistic(const NamedTensor& parameter) { return parameter.name.ends_with("absmax"); }

}  // namespace

FullySharded::FullySharded(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      second_version_(job.parallel.fsdp_version == 2),
      limited_(second_version_ || job.parallel.limit_all_gathers.value_or(true)),
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
      parameter.tensor.impl()->storage->restore_memory();
    } else {
      by_block[parameter.block].push_back(parameter.tensor);
    }
  }
  for (const auto& [block, tensors] : by_block) {
    Unit unit;
    unit.root = block < 0;
    unit.groups = flatten(device_, tensors, this);
    for (const FlatGroup& group : unit.groups) {
      if (group.trainable) unit.learning += group.leaves.size();
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
      if (unit.groups[i].trainable) optimized.push_back(unit.shards[i]);
    }
  }
  return optimized;
}

// What one group's construction leaves. Version 1 brings the parameters to the GPU one by one,
// copies rank 0's into them by way of buckets, joins them, and cuts its shard from the whole; all
// of it is freed at the end, but the allocator keeps the segments. Version 2 is taken to begin with
// shards, as on the meta device.
Tensor FullySharded::shard_of(const FlatGroup& group) {
  const DType dtype = group.trainable ? master_.value_or(group.whole.dtype()) : group.whole.dtype();
  const auto beside = [&](Session& session, std::int64_t elements, Component component) {
    return make_companion_tensor(group, session, elements, dtype, component);
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
    in_flight.push_back(make_companion_tensor(group, device_, elements, tensors[i].dtype(),
                                              Component::kCommunication));
    elements = 0;
    bucket = Bytes{};
  }
}

}  // namespace memfathom
