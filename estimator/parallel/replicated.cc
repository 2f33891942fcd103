#include "estimator/parallel/replicated.h"

namespace memfathom {
namespace {

// DDP's defaults: a small first bucket, so that reduction begins early, then larger ones.
constexpr std::int64_t kFirstBucket = 1 << 20;
constexpr std::int64_t kBucket = 25 << 20;

}  // namespace

Replicated::Replicated(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      has_buckets_(job.training.mode == Mode::kTrain && data_parallel_size(job.parallel) > 1),
      views_(job.parallel.gradient_as_bucket_view),
      offloads_(job.parallel.offload_optimizer),
      trains_(job.training.mode == Mode::kTrain),
      hosts_weights_(hosts_weights(job)),
      hosted_(device, host) {}

std::vector<Tensor> Replicated::adopt(const std::vector<NamedTensor>& parameters) {
  if (hosts_weights_) hosted_.adopt(parameters, !trains_);
  if (!trains_) return {};
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.requires_grad()) continue;
    leaves_.push_back(parameter.tensor);
    if (has_buckets_ && views_) parameter.tensor.impl()->storage->set_storage_observer(this);
  }
  if (has_buckets_) make_buckets();
  if (!offloads_) return leaves_;
  for (const Tensor& leaf : leaves_) {
    const ComponentScope scope(host_, Component::kParameters);
    copies_.push_back(host_.empty(leaf.shape(), leaf.dtype()));
  }
  return copies_;
}

// From the last parameter to the first, as gradients come; a bucket closes when it has reached its
// size.
void Replicated::make_buckets() {
  buckets_.clear();
  const ComponentScope scope(device_, views_ ? Component::kGradients : Component::kCommunication);
  std::vector<Tensor> members;
  std::int64_t bytes = 0;
  const auto close = [&] {
    if (members.empty()) return;
    std::int64_t offset = 0;
    for (const Tensor& member : members) {
      slots_[member.impl()] = {buckets_.size(), offset};
      offset += member.elements();
    }
    buckets_.push_back(device_.empty({offset}, members.front().dtype()));
    members.clear();
    bytes = 0;
  };
  for (auto leaf = leaves_.rbegin(); leaf != leaves_.rend(); ++leaf) {
    if (!members.empty() && members.front().dtype() != leaf->dtype()) close();
    members.push_back(*leaf);
    bytes += size_of(leaf->shape(), leaf->dtype()).count();
    if (bytes >= (buckets_.empty() ? kFirstBucket : kBucket)) close();
  }
  close();
}

void Replicated::gradient_ready(TensorImpl& leaf) {
  const BucketSlot& place = slots_.at(&leaf);
  const Tensor& bucket = buckets_[place.bucket];
  if (leaf.grad && leaf.grad.shares_storage_with(bucket)) return;
  leaf.grad = bucket.alias(leaf.shape, contiguous_strides(leaf.shape), place.offset);
}

// After the first backward DDP knows the true order and makes its buckets again.
void Replicated::before_forward() {
  hosted_.release_all();
  if (++passes_ == 2 && has_buckets_ && !views_) make_buckets();
}

void Replicated::before_step() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (!leaves_[i].grad() || copies_[i].grad()) continue;
    const ComponentScope scope(host_, Component::kGradients);
    copies_[i].set_grad(host_.empty(leaves_[i].shape(), leaves_[i].grad().dtype()));
  }
}

void Replicated::clear_gradients() {
  for (Tensor& leaf : leaves_) leaf.set_grad({});
}

}  // namespace memfathom
