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

void MasterPartitions::add(const FlatGroup& group, std::int64_t elements) {
  masters_.push_back(make_companion_tensor(group, on_host_ ? host_ : device_, elements,
                                           DType::kFp32, Component::kOptimizerState));
  origins_.push_back({group.whole.dtype(), group.module()});
}

void MasterPartitions::widen_gradients() {
  Session& session = on_host_ ? host_ : device_;
  const ComponentScope scope(session, Component::kGradients);
  std::int64_t room = at_once_;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const Scoped<ModuleIndex> module(session.module,
                                     on_host_ ? ModuleIndex{0} : origins_[i].module);
    const std::int64_t elements = std::min(masters_[i].elements(), room);
    room -= elements;
    Tensor gradient;  // as it was reduced; an fp32 one needs no copy
    if (!on_host_) gradient = session.empty({elements}, origins_[i].dtype);
    if (on_host_ || origins_[i].dtype != DType::kFp32)
      gradient = session.empty({elements}, DType::kFp32);
    masters_[i].set_grad(std::move(gradient));
  }
}

void MasterPartitions::clear_gradients() {
  for (Tensor& master : masters_) master.set_grad({});
}

ZeroPartitionedStates::ZeroPartitionedStates(Session& device, Session& host, const Job& job)
    : device_(device),
      buffers_(job.parallel.zero),
      stage_(job.parallel.zero_stage),
      overlaps_(job.parallel.zero.overlap_comm.value_or(false)),
      form_(job.training.optimizer_form),
      passes_per_step_(std::min<std::int64_t>(job.training.accumulation_steps, 2)),
      masters_(device, host, job) {}

std::vector<Tensor> ZeroPartitionedStates::adopt(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> learning;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.requires_grad()) {
      learning.push_back(parameter.tensor);
    } else {
      parameter.tensor.impl()->storage->restore_memory();
    }
  }
  groups_ = flatten(device_, learning, this);
  const Tensor* largest = nullptr;
  for (const FlatGroup& group : groups_) {
    group.storage().restore_memory();
    masters_.add(group, share_of(group.elements(), masters_.count()));
    for (const Tensor& leaf : group.leaves) {
      if (largest == nullptr || leaf.elements() > largest->elements()) largest = &leaf;
    }
  }
  // Gradients on their way to the host are added up in a buffer for the largest of them.
  if (masters_.on_host() && largest != nullptr) {
    kept_.push_back(make_companion_tensor(group_of(*largest->impl()), device_, largest->elements(),
                                          largest->dtype(), Component::kCommunication));
  }
  return masters_.tensors();
}

// DeepSpeed brings fused optimizers of its own.
void ZeroPartitionedStates::adjust(OptimizerOptions& options) const {
  options.form = form_.value_or(OptimizerForm::kFused);
  options.master_weights = false;
}

const FlatGroup& ZeroPartitionedStates::group_of(const TensorImpl& leaf) const {
  return *std::find_if(groups_.begin(), groups_.end(), [&](const FlatGroup& group) {
    return &group.storage() == leaf.storage.get();
  });
}

std::int64_t ZeroPartitionedStates::own_elements(const TensorImpl& leaf) const {
  const std::int64_t elements = group_of(leaf).elements();
  const std::int64_t begin = elements - share_of(elements, masters_.count());
  const std::int64_t end = leaf.offset + leaf.shape.elements();
  return std::max<std::int64_t>(0, end - std::max(begin, leaf.offset));
}

// The bucket is taken when the first gradient is there. Stage 2 moves every gradient to it; stage 1
// keeps them whole and does so after the last backward of the step, or during it with overlap.
void ZeroPartitionedStates::gradient_ready(TensorImpl& leaf) {
  if (buckets_.empty()) {
    for (int i = 0; i < (overlaps_ ? 2 : 1); ++i) {
      buckets_.push_back(
          make_companion_tensor(groups_.front(), device_, buffers_.reduce_bucket_size,
                                groups_.front().whole.dtype(), Component::kCommunication));
    }
  }
  if (stage_ == 2 || (overlaps_ && at_boundary())) add_to_bucket(leaf);
}

void ZeroPartitionedStates::add_to_bucket(TensorImpl& leaf) {
  const std::int64_t elements = leaf.shape.elements();
  if (filled_ + elements > buffers_.reduce_bucket_size) reduce_bucket();
  if (elements <= buffers_.reduce_bucket_size) leaf.grad.reset();  // now a view of the bucket
  in_bucket_.push_back(&leaf);
  filled_ += elements;
}

// What the bucket holds is joined once more for the reduction. Then only gradients of the rank's
// own partition outlive it.
void ZeroPartitionedStates::reduce_bucket() {
  if (in_bucket_.empty()) return;
  const FlatGroup& group = group_of(*in_bucket_.front());
  make_companion_tensor(group, device_, filled_, group.whole.dtype(), Component::kCommunication);
  for (TensorImpl* leaf : in_bucket_) keep_own_part(*leaf);
  in_bucket_.clear();
  filled_ = 0;
}

void ZeroPartitionedStates::keep_own_part(TensorImpl& leaf) {
  const std::int64_t own = own_elements(leaf);
  const FlatGroup& group = group_of(leaf);
  if (own > 0 && masters_.on_host()) {
    // Its norm is taken in fp64 here; it travels in fp32.
    if (at_boundary()) {
      for (const DType wide : {DType::kFp64, DType::kFp32})
        make_companion_tensor(group, device_, own, wide, Component::kGradients);
    }
  } else if (own > 0 && !own_) {
    std::int64_t all = 0;
    for (const FlatGroup& other : groups_) {
      for (const Tensor& each : other.leaves) {
        if (own_elements(*each.impl()) > 0) all += each.elements();
      }
    }
    own_ = make_companion_tensor(group, device_, all, group.whole.dtype(), Component::kGradients);
  }
  leaf.grad.reset();
}

void ZeroPartitionedStates::after_backward() {
  const bool last = at_boundary();
  if (stage_ == 1 && !overlaps_ && last) {
    for (const FlatGroup& group : groups_) {
      for (const Tensor& leaf : group.leaves) {
        if (leaf.grad()) add_to_bucket(*leaf.impl());
      }
    }
  }
  reduce_bucket();
  if (stage_ == 2 || last) buckets_.clear();
  if (accumulated_) {
    own_.reset();  // added to it
  } else {
    accumulated_ = std::move(own_);
  }
  ++passes_;
}

void ZeroPartitionedStates::before_step() {
  passes_ = 0;
  if (!masters_.on_host()) {
    for (const FlatGroup& group : groups_) {
      for (const Tensor& leaf : group.leaves) {  // the norm, in fp64
        if (const std::int64_t own = own_elements(*leaf.impl()); own > 0)
          make_companion_tensor(group, device_, own, DType::kFp64, Component::kGradients);
      }
    }
  }
  masters_.widen_gradients();
  clear_gradients();
}

void ZeroPartitionedStates::clear_gradients() {
  for (const FlatGroup& group : groups_) {
    for (Tensor leaf : group.leaves) leaf.set_grad({});
  }
  accumulated_.reset();
}

}  // namespace memfathom
