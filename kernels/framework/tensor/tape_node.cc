#include "kernels/framework/tensor/tape_node.h"

#include "core/error.h"
#include "kernels/framework/tensor/checkpoint.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

namespace {

// A dense view of the elements, so that one copy moves them.
Tensor gathered(Session& session, const Tensor& tensor) {
  if (is_dense(tensor.shape(), tensor.strides())) return tensor;
  Tensor dense = session.empty(tensor.shape(), tensor.dtype());
  session.device().run(ElementwiseCall{Elementwise::kCopy, dense.operand(), tensor.operand()});
  return dense;
}

// torch.autograd.graph.save_on_cpu: the host copy, in the memory of `host`.
Tensor moved_to(Session& host, Session& session, const Tensor& tensor) {
  if (!session.computes())
    return host.empty_strided(tensor.shape(), tensor.strides(), tensor.dtype());
  if (!host.computes())
    throw Error(ErrorKind::kInternal, "saved tensors of a device that computes need host memory");
  const Tensor dense = gathered(session, tensor);
  Tensor copy = host.empty_strided(dense.shape(), dense.strides(), dense.dtype());
  session.device().copy_to_host(copy.operand().data, dense.operand().data,
                                size_of(dense.shape(), dense.dtype()));
  return copy;
}

Tensor brought_back(Session& session, const Tensor& tensor) {
  Tensor copy = session.empty_strided(tensor.shape(), tensor.strides(), tensor.dtype());
  if (session.computes()) {
    session.device().copy_from_host(copy.operand().data, tensor.operand().data,
                                    size_of(tensor.shape(), tensor.dtype()));
  }
  return copy;
}

}  // namespace

SavedTensor::SavedTensor(const Tensor& tensor) {
  if (!tensor) return;
  Session& session = tensor.session();
  const Component component = tensor.impl()->storage->component();
  if (session.offload_session != nullptr && component != Component::kParameters &&
      component != Component::kAdapterParameters) {
    home_ = &session;
    tensor_ = moved_to(*session.offload_session, session, tensor);
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
  notify_before_use(tensor_);
  if (home_ == nullptr) return tensor_;
  const ComponentScope scope(*home_, Component::kActivations);
  return brought_back(*home_, tensor_);
}

void destroy(TapeNode* node) { delete node; }

TapeNode::~TapeNode() {
  if (destroy_ != nullptr) destroy_(closure_);
  // Destroys long chains of nodes iteratively, not by recursion, and takes no memory for it.
  Ref<TapeNode> pending;
  const auto push_last_owned = [&pending](TapeNode& node) {
    for (Edge& edge : node.edges) {
      if (!edge.node || edge.node->use_count() != 1) continue;
      edge.node->next_to_destroy_ = std::move(pending);
      pending = std::move(edge.node);
    }
  };
  push_last_owned(*this);
  while (pending) {
    const Ref<TapeNode> node = std::move(pending);
    pending = std::move(node->next_to_destroy_);
    push_last_owned(*node);
  }
}

void TapeNode::release() { saved.clear(); }

}  // namespace memfathom
