#include <algorithm>
#include <limits>
#include <map>

#include "estimator/parallel/zero.h"

namespace memfathom {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kPersistentBelow =
    100000;  // elements: smaller parameters are never partitioned
constexpr int kGatherStream = 1;

}  // namespace

ZeroPartitionedParameters::ZeroPartitionedParameters(Session& device, Session& host, const Job& job)
    : device_(device),
      host_(host),
      buffers_(job.parallel.zero),
      form_given_(job.training.optimizer_form_given),
      parameters_on_host_(job.parallel.offload_parameters),
      masters_(device, host, job),
      current_(kNone) {}

std::vector<Tensor> ZeroPartitionedParameters::adopt(const std::vector<NamedTensor>& parameters) {
  std::map<std::int64_t, std::vector<Tensor>> by_block;
  std::vector<Tensor> alone;  // modules outside the blocks are fetched one by one
  std::vector<Tensor> small;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.elements() < kPersistentBelow) {
      small.push_back(parameter.tensor);
    } else if (parameter.block < 0) {
      alone.push_back(parameter.tensor);
    } else {
      by_block[parameter.block].push_back(parameter.tensor);
    }
  }
  for (const Tensor& parameter : alone) add_unit({parameter});
  for (const auto& [block, tensors] : by_block) add_unit(tensors);
  persistent_ = flatten(device_, small, this);
  for (const FlatGroup& group : persistent_) {
    group.storage().bring_back();
    masters_.add(group);
  }
  if (!masters_.tensors().empty()) {
    const DType dtype = units_.empty() ? persistent_.front().whole.dtype()
                                       : units_.front().groups.front().whole.dtype();
    const ComponentScope scope(device_, Component::kCommunication);
    kept_.push_back(device_.empty({buffers_.reduce_bucket_size}, dtype));
  }
  return masters_.tensors();
}

void ZeroPartitionedParameters::add_unit(const std::vector<Tensor>& tensors) {
  Unit unit;
  unit.groups = flatten(device_, tensors, this);
  for (const FlatGroup& group : unit.groups) {
    unit.elements += group.elements();
    unit_of_[&group.storage()] = units_.size();
    const std::int64_t share = share_of(group.elements(), masters_.count());
    kept_.push_back(tensor_beside(group, parameters_on_host_ ? host_ : device_, share,
                                  group.whole.dtype(), group.component()));
    if (group.learns) {
      kept_.push_back(tensor_beside(group, masters_.on_host() ? host_ : device_, share,
                                    group.whole.dtype(), Component::kGradients));
    }
    masters_.add(group);
  }
  total_ += unit.elements;
  units_.push_back(std::move(unit));
}

void ZeroPartitionedParameters::adjust(OptimizerOptions& options) const {
  if (!form_given_) options.form = OptimizerForm::kFused;
  options.master_weights = false;
}

// What comes back within max_reuse_distance is not released between forward and backward.
bool ZeroPartitionedParameters::soon_again(const Unit& unit) const {
  return !device_.in_backward && device_.grad_enabled && unit.after >= 0 &&
         2 * unit.after <= buffers_.max_live_parameters;
}

void ZeroPartitionedParameters::before_use(Storage& storage) {
  const auto found = unit_of_.find(&storage);
  if (found == unit_of_.end() || found->second == current_) return;
  current_ = found->second;
  Unit& unit = units_[current_];
  if (unit.after < 0) {
    seen_ += unit.elements;
    unit.after = total_ - seen_;
  }
  prefetched_.reset();
  for (Unit& other : units_) {
    if (&other == &unit || !other.gathered || soon_again(other)) continue;
    // Kept from the forward pass: it goes when its own backward is over, that is, when an earlier
    // one is used.
    if (device_.in_backward && other.after >= unit.after) continue;
    for (const FlatGroup& group : other.groups) group.storage().let_go();
    other.gathered = false;
  }
  const Scoped<int> stream(device_.stream, kGatherStream);
  for (const FlatGroup& group : unit.groups) group.storage().bring_back();
  unit.gathered = true;
  const std::int64_t ahead = std::min(buffers_.prefetch_bucket_size, total_ - unit.elements);
  if (ahead > 0) {
    const ComponentScope scope(device_, Component::kCommunication);
    prefetched_ = device_.empty({ahead}, unit.groups.front().whole.dtype());
  }
}

// Copied to the bucket at once; the partition's part has its place already.
void ZeroPartitionedParameters::gradient_ready(TensorImpl& leaf) { leaf.grad.reset(); }

void ZeroPartitionedParameters::after_backward() {
  for (Unit& unit : units_) {
    for (const FlatGroup& group : unit.groups) group.storage().let_go();
    unit.gathered = false;
  }
  prefetched_.reset();
  current_ = kNone;
}

void ZeroPartitionedParameters::before_step() { masters_.widen_gradients(); }

void ZeroPartitionedParameters::clear_gradients() {}

}  // namespace memfathom
