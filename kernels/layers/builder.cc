#include "kernels/layers/builder.h"

#include <fmt/format.h>

namespace memfathom {

bool Builder::learns() const {
  switch (options_.train) {
    case Train::kFull: return true;
    case Train::kFrozen:
    case Train::kLora: return false;
    case Train::kLast: return head_depth_ > 0 || (blocks_left_ >= 0 && blocks_left_ < options_.last_blocks);
  }
  return false;
}

Tensor Builder::parameter(std::string_view name, const Shape& shape, std::optional<DType> dtype) {
  const ComponentScope scope(session_, Component::kParameters);
  Tensor made = session_.empty(shape, dtype.value_or(options_.dtype));
  made.set_requires_grad(learns());
  parameters_.push_back({path_ + std::string(name), made});
  parameter_count_ += shape.elements();
  return made;
}

Tensor Builder::frozen_parameter(std::string_view name, const Shape& shape, DType dtype) {
  const ComponentScope scope(session_, Component::kParameters);
  Tensor made = session_.empty(shape, dtype);
  parameters_.push_back({path_ + std::string(name), made});
  return made;
}

Tensor Builder::buffer(std::string_view name, const Shape& shape, DType dtype, bool persistent) {
  const ComponentScope scope(session_, Component::kBuffers);
  const bool follows = is_floating(dtype) && (persistent || options_.train == Train::kLora);
  Tensor made = session_.empty(shape, follows ? options_.dtype : dtype);
  buffers_.push_back({path_ + std::string(name), made});
  return made;
}

Tensor Builder::adapter_parameter(std::string name, const Shape& shape, DType dtype) {
  const ComponentScope scope(session_, Component::kAdapterParameters);
  Tensor made = session_.empty(shape, dtype);
  made.set_requires_grad(true);
  parameters_.push_back({std::move(name), made});
  parameter_count_ += shape.elements();
  return made;
}

void Builder::finish() {
  for (const std::function<void()>& make : after_base_) make();
  after_base_.clear();
}

std::vector<Tensor> Builder::trainable() const {
  std::vector<Tensor> learning;
  for (const NamedTensor& parameter : parameters_) {
    if (parameter.tensor.requires_grad()) learning.push_back(parameter.tensor);
  }
  return learning;
}

PathScope::PathScope(Builder& builder, std::string_view name) : builder_(builder), length_(builder.path_.size()) {
  builder_.path_.append(name).push_back('.');
}

PathScope::PathScope(Builder& builder, std::string_view name, std::int64_t index)
    : builder_(builder), length_(builder.path_.size()) {
  fmt::format_to(std::back_inserter(builder_.path_), "{}.{}.", name, index);
}

}  // namespace memfathom
