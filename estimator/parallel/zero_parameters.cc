#include <algorithm>
#include <limits>
#include <map>

#include "estimator/parallel/zero.h"

namespace memfathom {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kPersistenceThreshold =
    100000;  // elements: smaller parameters are never partitioned
constexpr std::int64_t kReuseDistance = 1000000000;  // elements, DeepSpeed's default
constexpr int kGatherStream = 1;

}  // namespace

ZeroPartitionedParameters::ZeroPartitionedParameters(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      buffers_(job.parallel.zero),
      form_(job.training.optimizer_form),
      parameters_on_host_(job.parallel.offload_parameters),
      masters_(device, host, job),
      current_(kNone) {}

std::vector<Tensor> ZeroPartitionedParameters::adopt(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> small;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.elements() < kPersistenceThreshold) {
      small.push_back(parameter.tensor);
      continue;
    }
    for (FlatGroup& group : flatten(device_, {parameter.tensor}, this)) {
      index_of_[&group.storage()] = parameters_.size();
      parameters_.push_back({std::move(group), nullptr});
    }
  }
  persistent_ = flatten(device_, small, this);
  std::map<std::pair<ModuleIndex, DType>, std::pair<const FlatGroup*, std::int64_t>> learning;
  const auto divide = [&](const FlatGroup& group) {
    add_partition(group);
    if (!group.trainable) return;
    auto& [first, elements] = learning[{group.module(), group.whole.dtype()}];
    if (first == nullptr) first = &group;
    elements += share_of(group.elements(), masters_.count());
  };
  for (const Parameter& parameter : parameters_) divide(parameter.group);
  for (const FlatGroup& group : persistent_) {
    divide(group);
    group.storage().restore_memory();
  }
  for (const auto& [key, part] : learning) masters_.add(*part.first, part.second);
  if (!learning.empty()) {
    const ComponentScope scope(device_, Component::kCommunication);
    kept_.push_back(device_.empty({buffers_.reduce_bucket_size}, learning.begin()->first.second));
  }
  return masters_.tensors();
}

// The rank's own part of a parameter, and of its gradient.
void ZeroPartitionedParameters::add_partition(const FlatGroup& group) {
  const std::int64_t share = share_of(group.elements(), masters_.count());
  kept_.push_back(make_companion_tensor(group, parameters_on_host_ ? host_ : device_, share,
                                        group.whole.dtype(), group.component()));
  if (!group.trainable) return;
  kept_.push_back(make_companion_tensor(group, masters_.on_host() ? host_ : device_, share,
                                        group.whole.dtype(), Component::kGradients));
}

void ZeroPartitionedParameters::adjust(OptimizerOptions& options) const {
  options.form = form_.value_or(OptimizerForm::kFused);
  options.master_weights = false;
}

void ZeroPartitionedParameters::before_use(Storage& storage) {
  const auto found = index_of_.find(&storage);
  if (found != index_of_.end() && found->second != current_) use(found->second);
}

void ZeroPartitionedParameters::use(std::size_t index) {
  if (current_ != kNone) release(current_);
  current_ = index;
  if (order_known_ && position_ == 0)
    prefetch();  // the model itself is a module without parameters
  Parameter& parameter = parameters_[index];
  if (parameter.absent()) gather({index});
  await(parameter);
  if (order_known_) {
    if (parameter.wanted_until < position_ && queued_ < order_.size()) {
      parameter.wanted_until = static_cast<std::int64_t>(queued_);
      ++queued_;
    }
    prefetch();
  } else {
    order_.push_back(index);
  }
  ++position_;
}

// A parameter alone is gathered where it will lie; several are written to one buffer first.
void ZeroPartitionedParameters::gather(const std::vector<std::size_t>& members) {
  const Scoped<int> stream(device_.stream, kGatherStream);
  auto gather = std::make_shared<Gather>();
  gather->members = members;
  std::int64_t padded = 0;
  for (const std::size_t index : members) {
    const Parameter& parameter = parameters_[index];
    padded += share_of(parameter.elements(), masters_.count()) * masters_.count();
    live_ += parameter.elements();
    parameters_[index].under_way = gather;
  }
  const FlatGroup& first = parameters_[members.front()].group;
  if (members.size() == 1) {
    first.storage().restore_memory();
  } else {
    gather->written = make_companion_tensor(first, device_, padded, first.whole.dtype(),
                                            Component::kCommunication);
  }
}

// All parameters of a gather are cut out of its buffer at once; the buffer lives until the last of
// them is used.
void ZeroPartitionedParameters::await(Parameter& parameter) {
  if (!parameter.under_way) return;
  const Scoped<int> stream(device_.stream, kGatherStream);
  Gather& gather = *parameter.under_way;
  if (!std::exchange(gather.complete, true)) {
    for (const std::size_t index : gather.members) {
      Parameter& member = parameters_[index];
      if (!member.group.storage().resident()) member.group.storage().restore_memory();
      member.available = true;
    }
  }
  parameter.under_way.reset();
}

void ZeroPartitionedParameters::prefetch() {
  const std::int64_t most =
      std::min(buffers_.max_live_parameters - live_, buffers_.prefetch_bucket_size);
  std::vector<std::size_t> next;
  std::int64_t elements = 0;
  for (; queued_ < order_.size() && elements < most; ++queued_) {
    const std::size_t index = order_[queued_];
    Parameter& parameter = parameters_[index];
    parameter.wanted_until = std::max(parameter.wanted_until, static_cast<std::int64_t>(queued_));
    if (!parameter.absent() || std::find(next.begin(), next.end(), index) != next.end()) continue;
    next.push_back(index);
    elements += parameter.elements();
  }
  if (!next.empty()) gather(next);
}

// Used again before so many elements have passed by that it would not pay to let it go. What is
// kept so may exceed max_live_parameters, which only holds back what is fetched ahead.
bool ZeroPartitionedParameters::is_reused_soon(std::size_t index) const {
  if (!order_known_) return false;
  const Parameter& parameter = parameters_[index];
  if (parameter.wanted_until > position_) return true;
  const auto next = std::lower_bound(parameter.uses.begin(), parameter.uses.end(),
                                     static_cast<std::size_t>(position_));
  return next != parameter.uses.end() &&
         used_before_[*next] - used_before_[static_cast<std::size_t>(position_)] < kReuseDistance;
}

// After the first pass.
void ZeroPartitionedParameters::learn_order() {
  std::int64_t used = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Parameter& parameter = parameters_[order_[i]];
    parameter.uses.push_back(i);
    used_before_.push_back(used);
    used += parameter.elements();
  }
  order_known_ = true;
}

void ZeroPartitionedParameters::release(std::size_t index) {
  Parameter& parameter = parameters_[index];
  if (index == current_) current_ = kNone;
  if (!parameter.available || parameter.under_way || is_reused_soon(index)) return;
  parameter.group.storage().release_memory();
  parameter.available = false;
  live_ -= parameter.elements();
}

// Moved to the bucket at once, unless there is no room for it even in an empty one; the partition's
// part has its place already.
void ZeroPartitionedParameters::gradient_ready(TensorImpl& leaf) {
  const auto found = index_of_.find(leaf.storage.get());
  // Its module is fetched for backward even where no operation reads it, as an embedding's.
  if (found != index_of_.end() && found->second != current_) use(found->second);
  const std::int64_t elements = leaf.shape.elements();
  if (filled_ + elements > buffers_.reduce_bucket_size) reduce_bucket();
  if (filled_ + elements <= buffers_.reduce_bucket_size) leaf.grad.reset();
  in_bucket_.push_back(&leaf);
  filled_ += elements;
  if (found != index_of_.end()) release(found->second);
}

// Partitions of several gradients are put side by side for the reduction.
void ZeroPartitionedParameters::reduce_bucket() {
  if (in_bucket_.empty()) return;
  if (in_bucket_.size() > 1 || filled_ % masters_.count() != 0) {
    const ComponentScope scope(device_, Component::kCommunication);
    device_.empty({filled_}, in_bucket_.front()->dtype);
  }
  for (TensorImpl* leaf : in_bucket_) leaf->grad.reset();
  in_bucket_.clear();
  filled_ = 0;
}

void ZeroPartitionedParameters::after_backward() {
  reduce_bucket();
  if (!order_known_) learn_order();
  for (Parameter& parameter : parameters_) {
    parameter.group.storage().release_memory();
    parameter.under_way.reset();
    parameter.available = false;
    parameter.wanted_until = -1;
  }
  live_ = position_ = 0;
  queued_ = 0;
  current_ = kNone;
}

// Even the small ones are in partitions only while these are updated.
void ZeroPartitionedParameters::before_step() {
  for (const FlatGroup& group : persistent_) group.storage().release_memory();
  masters_.widen_gradients();
}

void ZeroPartitionedParameters::after_step() {
  masters_.clear_gradients();
  for (const FlatGroup& group : persistent_) group.storage().restore_memory();
}

void ZeroPartitionedParameters::clear_gradients() {}

}  // namespace memfathom
