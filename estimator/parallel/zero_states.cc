#include <algorithm>

#include "estimator/parallel/zero.h"

namespace memfathom {
namespace {

// Stage 3 steps through its partition in groups of this many elements.
constexpr std::int64_t kSubGroup = 1000000000;

}  // namespace

MasterPartitions::MasterPartitions(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      on_host_(job.parallel.offload_optimizer),
      count_(shard_count(job.parallel)) {
  if (job.parallel.zero_stage == 3 && !on_host_) at_once_ = kSubGroup;
}

void MasterPartitions::add(const FlatGroup& group) {
  if (!group.learns) return;
  masters_.push_back(tensor_beside(group, on_host_ ? host_ : device_,
                                   share_of(group.elements(), count_), DType::kFp32,
                                   Component::kOptimizerState));
  modules_.push_back(group.module());
}

void MasterPartitions::widen_gradients() {
  Session& session = on_host_ ? host_ : device_;
  const ComponentScope scope(session, Component::kGradients);
  std::int64_t room = at_once_;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const Scoped<ModuleIndex> module(session.module, on_host_ ? ModuleIndex{0} : modules_[i]);
    const std::int64_t elements = std::min(masters_[i].elements(), room);
    room -= elements;
    masters_[i].set_grad(session.empty({elements}, DType::kFp32));
  }
}

ZeroPartitionedStates::ZeroPartitionedStates(Session& device, Session& host, const Job& job)
    : device_(device),
      buffers_(job.parallel.zero),
      stage_(job.parallel.zero_stage),
      form_given_(job.training.optimizer_form_given),
      masters_(device, host, job) {}

std::vector<Tensor> ZeroPartitionedStates::adopt(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> learning;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.requires_grad()) {
      learning.push_back(parameter.tensor);
    } else {
      parameter.tensor.impl()->storage->bring_back();
    }
  }
  groups_ = flatten(device_, learning, this);
  for (const FlatGroup& group : groups_) {
    group.storage().bring_back();
    masters_.add(group);
  }
  return masters_.tensors();
}

// DeepSpeed brings fused optimizers of its own.
void ZeroPartitionedStates::adjust(OptimizerOptions& options) const {
  if (!form_given_) options.form = OptimizerForm::kFused;
  options.master_weights = false;
}

std::int64_t ZeroPartitionedStates::own_elements(const FlatGroup& group,
                                                 const TensorImpl& leaf) const {
  const std::int64_t begin = group.elements() - share_of(group.elements(), masters_.count());
  const std::int64_t end = leaf.offset + leaf.shape.elements();
  return std::max<std::int64_t>(0, end - std::max(begin, leaf.offset));
}

void ZeroPartitionedStates::before_backward() {
  if (groups_.empty()) return;
  const ComponentScope scope(device_, Component::kCommunication);
  const int copies = buffers_.overlap_comm.value_or(false) ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    buckets_.push_back(device_.empty({buffers_.reduce_bucket_size}, groups_.front().whole.dtype()));
}

// Stage 1 keeps whole gradients. Stage 2 copies them to the bucket, and only what falls into the
// rank's own partition outlives it, on the host if the optimizer is there.
void ZeroPartitionedStates::gradient_ready(TensorImpl& leaf) {
  if (stage_ < 2 && !masters_.on_host()) return;
  const DType dtype = leaf.grad.dtype();
  leaf.grad.reset();
  if (masters_.on_host()) return;
  const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const FlatGroup& g) {
    return &g.storage() == leaf.storage.get();
  });
  const std::int64_t own = own_elements(*group, leaf);
  Tensor& kept = partition_gradients_[&leaf];
  if (own > 0 && !kept) kept = tensor_beside(*group, device_, own, dtype, Component::kGradients);
}

void ZeroPartitionedStates::after_backward() { buckets_.clear(); }

void ZeroPartitionedStates::before_step() {
  std::vector<Tensor> joined;  // the partition's gradients as one tensor, then widened
  if (!masters_.on_host()) {
    for (const FlatGroup& group : groups_) {
      joined.push_back(tensor_beside(group, device_, share_of(group.elements(), masters_.count()),
                                     group.whole.dtype(), Component::kGradients));
    }
  }
  masters_.widen_gradients();
  joined.clear();
  clear_gradients();
}

// The updated partitions are gathered in pieces.
void ZeroPartitionedStates::after_step() {
  if (masters_.count() == 1) return;
  for (const FlatGroup& group : groups_) {
    const Tensor piece =
        tensor_beside(group, device_, std::min(group.elements(), buffers_.allgather_bucket_size),
                      group.whole.dtype(), Component::kCommunication);
  }
}

void ZeroPartitionedStates::clear_gradients() {
  for (const FlatGroup& group : groups_) {
    for (Tensor leaf : group.leaves) leaf.set_grad({});
  }
  partition_gradients_.clear();
}

}  // namespace memfathom
