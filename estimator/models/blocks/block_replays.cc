#include "estimator/models/blocks/block_replays.h"

#include <algorithm>
#include <utility>

#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

bool is_alike(const NamedTensor& a, const NamedTensor& b) {
  const Tensor& first = a.tensor;
  const Tensor& second = b.tensor;
  return a.name == b.name && first.shape() == second.shape() &&
         first.strides() == second.strides() && first.dtype() == second.dtype() &&
         first.requires_grad() == second.requires_grad() &&
         first.impl()->storage->component() == second.impl()->storage->component() &&
         first.impl()->storage->module() == second.impl()->storage->module();
}

}  // namespace

void BlockReplays::add(const Builder& builder, std::uint32_t kind) {
  builder_ = &builder;
  blocks_.push_back({builder.blocks() - 1, kind, builder.path(), {}, {}, 0});
}

// At the first pass: adapters are made after the whole model, and sharded after that.
void BlockReplays::compare() {
  if (std::exchange(is_compared_, true) || blocks_.empty()) return;
  const std::int64_t first = blocks_.front().number;
  for (const NamedTensor& parameter : builder_->parameters()) {
    const std::int64_t index = parameter.block - first;
    if (parameter.block < first || index >= static_cast<std::int64_t>(blocks_.size())) continue;
    Block& block = blocks_[static_cast<std::size_t>(index)];
    const Storage& storage = *parameter.tensor.impl()->storage;
    is_observed_ = is_observed_ || storage.storage_observer() != nullptr || !storage.resident();
    block.all.push_back({parameter.name.starts_with(block.path)
                             ? parameter.name.substr(block.path.size())
                             : parameter.name,
                         parameter.tensor, index});
    if (parameter.tensor.requires_grad()) block.parameters.push_back(parameter.tensor);
  }
  last_alike_.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    const auto like = std::find_if(
        blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Block& other) {
          return other.kind == block.kind &&
                 std::equal(block.all.begin(), block.all.end(), other.all.begin(), other.all.end(),
                            is_alike);
        });
    block.alike = static_cast<std::size_t>(like - blocks_.begin());
    last_alike_[block.alike] = i;
  }
  for (Block& block : blocks_) block.all = {};
}

BlockReplays::Pass::Pass(BlockReplays& blocks, const ModelSettings& settings, KeyValueCache* cache,
                         Tensor* last_weights)
    : blocks_(blocks), cache_(cache), last_weights_(last_weights), is_replaying_(false) {
  if (!replays_segments() || blocks.blocks_.empty() || settings.adapters) return;
  if (cache != nullptr && settings.kv_cache == KvCache::kTuple) return;
  blocks.compare();
  is_replaying_ = !blocks.is_observed_;
}

Tensor BlockReplays::Pass::operator()(std::size_t index, const Tensor& x,
                                      const SegmentFunction& run) {
  const Session& session = x.session();
  if (!is_replaying_ || session.computes() || session.offload_session != nullptr ||
      session.checkpoint != nullptr)
    return run(x);
  const Block& block = blocks_.blocks_[index];
  const bool is_last = blocks_.last_alike_[block.alike] == index;
  SegmentParts parts;
  parts.parameters = &block.parameters;
  if (cache_ != nullptr) cache_->add_tensors(index, parts.state);
  if (last_weights_ != nullptr) parts.state.push_back(last_weights_);
  std::shared_ptr<SegmentReplay>& replay = replays_[block.alike];
  if (!replay || !replay->plays(x, parts)) {
    if (is_last) return run(x);
    replay = std::make_shared<SegmentReplay>(x.session());
    return replay->record(x, parts, run);
  }
  if (is_last && replay->has_gradients()) return replay->record_last(x, parts, run);
  return replay->play(x, parts);
}

}  // namespace memfathom
