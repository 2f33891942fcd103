#include "kernels/framework/tensor/recording.h"

#include <algorithm>

#include "kernels/framework/tensor/engine.h"

namespace memfathom {
namespace {

bool wants_gradient(const Tensor* tensor) {
  return tensor != nullptr && tensor->defined() && tensor->requires_grad();
}

}  // namespace

Recording::Recording(Session& session, const char* name,
                     std::initializer_list<const Tensor*> inputs)
    : session_(session) {
  for (const Tensor* input : inputs) {
    if (input != nullptr) notify_before_use(*input);
  }
  if (!session.grad_enabled) return;
  bool any = false;
  for (const Tensor* input : inputs) any = any || wants_gradient(input);
  if (!any) return;
  node_ = make_ref<TapeNode>(name, session.next_sequence());
  node_->module = session.module;
  for (const Tensor* input : inputs) {
    node_->edges.push_back(wants_gradient(input) ? gradient_edge(*input) : Edge{});
  }
}

Recording::Recording(Session& session, const char* name, std::span<const Tensor> inputs)
    : session_(session) {
  for (const Tensor& input : inputs) notify_before_use(input);
  if (!session.grad_enabled) return;
  if (std::none_of(inputs.begin(), inputs.end(),
                   [](const Tensor& input) { return wants_gradient(&input); }))
    return;
  node_ = make_ref<TapeNode>(name, session.next_sequence());
  node_->module = session.module;
  for (const Tensor& input : inputs) {
    node_->edges.push_back(wants_gradient(&input) ? gradient_edge(input) : Edge{});
  }
}

void Recording::save(const Tensor& tensor) {
  if (!node_) return;
  if (session_.checkpoint != nullptr && tensor.defined()) {
    node_->saved.push_back(session_.checkpoint->pack(tensor));
  } else if (session_.offload_session != nullptr && tensor.defined()) {
    waiting_.push_back({node_->saved.size(), tensor});
    node_->saved.emplace_back(Tensor());
  } else {
    node_->saved.emplace_back(tensor);
  }
}

void Recording::move_to_host() {
  for (const PendingOffload& one : waiting_) node_->saved[one.place] = SavedTensor(one.tensor);
  waiting_.clear();
}

void Recording::attach(Tensor& output) {
  if (!node_) return;
  TensorImpl& impl = *output.impl();
  impl.requires_grad = true;
  impl.output_number = static_cast<std::uint32_t>(node_->outputs.size());
  impl.grad_fn = node_;
  node_->outputs.push_back({impl.shape, impl.dtype});
  if (session_.checkpoint != nullptr) session_.checkpoint->note_result(node_->name(), output);
}

}  // namespace memfathom
