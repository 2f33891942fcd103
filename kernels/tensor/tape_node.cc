#include "kernels/tensor/tape_node.h"

#include "core/error.h"
#include "kernels/tensor/checkpoint.h"
#include "kernels/tensor/session.h"

namespace memfathom {

SavedTensor::SavedTensor(const Tensor& tensor) {
  if (!tensor) return;
  Session& session = tensor.session();
  const Component component = tensor.impl()->storage->component();
  if (session.saved_on != nullptr && component != Component::kParameters &&
      component != Component::kAdapterParameters) {
    if (session.computes()) {
      throw Error(ErrorKind::kInternal,
                  "saved tensors wait on the host in accounts only, not on a device that computes");
    }
    home_ = &session;
    tensor_ = session.saved_on->empty_strided(tensor.shape(), tensor.strides(), tensor.dtype());
    tensor_.impl()->storage->add_saved();
    return;
  }
  tensor_ =
      tensor.detach();  // without history: an output that saves itself must not keep itself alive
  tensor_.impl()->storage->add_saved();
}

SavedTensor::SavedTensor(Ref<CheckpointFrame> frame, std::uint32_t index)
    : frame_(std::move(frame)), index_(index) {}

SavedTensor::SavedTensor(SavedTensor&&) noexcept = default;

SavedTensor& SavedTensor::operator=(SavedTensor&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(frame_, other.frame_);
  std::swap(index_, other.index_);
  std::swap(home_, other.home_);
  return *this;
}

SavedTensor::~SavedTensor() {
  if (tensor_) tensor_.impl()->storage->remove_saved();
}

Tensor SavedTensor::unpack() const {
  if (frame_) return frame_->unpack(index_);
  announce_use(tensor_);
  if (home_ == nullptr) return tensor_;
  const ComponentScope scope(*home_, Component::kActivations);
  return home_->empty_strided(tensor_.shape(), tensor_.strides(), tensor_.dtype());
}

void destroy(TapeNode* node) { delete node; }

TapeNode::~TapeNode() {
  if (destroy_ != nullptr) destroy_(closure_.data());
  // Long chains of nodes go one by one, not by recursion.
  std::vector<Ref<TapeNode>> pending;
  for (Edge& edge : edges) {
    if (edge.node && edge.node->use_count() == 1) pending.push_back(std::move(edge.node));
  }
  while (!pending.empty()) {
    const Ref<TapeNode> node = std::move(pending.back());
    pending.pop_back();
    for (Edge& edge : node->edges) {
      if (edge.node && edge.node->use_count() == 1) pending.push_back(std::move(edge.node));
    }
  }
}

void TapeNode::release() { saved.clear(); }

}  // namespace memfathom
