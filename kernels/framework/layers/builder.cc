#include "kernels/framework/layers/builder.h"

#include <fmt/format.h>

#include "core/error.h"

namespace memfathom {
namespace {

void add_checked(std::int64_t& count, std::int64_t more, std::string_view path,
                 std::string_view name) {
  if (!__builtin_add_overflow(count, more, &count)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("at {}{} the model has more parameters than can be counted; make its "
                          "layers smaller",
                          path, name));
}

}  // namespace

bool Builder::new_parameters_trainable() const {
  if (frozen_depth_ > 0) return false;
  switch (options_.train) {
    case TrainableSubset::kFull: return true;
    case TrainableSubset::kFrozen:
    case TrainableSubset::kLora: return false;
    case TrainableSubset::kLast:
      return head_depth_ > 0 || (blocks_left_ >= 0 && blocks_left_ < options_.last_blocks);
  }
  return false;
}

Tensor Builder::make(const Shape& shape, DType dtype) {
  return options_.deferred ? session_.deferred(shape, dtype) : session_.empty(shape, dtype);
}

Tensor Builder::parameter(std::string_view name, const Shape& shape, std::optional<DType> dtype) {
  const ComponentScope scope(session_, Component::kParameters);
  Tensor made = make(shape, dtype.value_or(options_.dtype));
  made.set_requires_grad(new_parameters_trainable());
  parameters_.push_back({path_ + std::string(name), made, block_});
  add_checked(parameter_count_, shape.elements(), path_, name);
  return made;
}

Tensor Builder::frozen_parameter(std::string_view name, const Shape& shape, DType dtype) {
  const ComponentScope scope(session_, Component::kParameters);
  Tensor made = make(shape, dtype);
  parameters_.push_back({path_ + std::string(name), made, block_});
  return made;
}

Tensor Builder::buffer(std::string_view name, const Shape& shape, DType dtype, bool persistent) {
  const ComponentScope scope(session_, Component::kBuffers);
  const bool follows =
      is_floating(dtype) && (persistent || options_.train == TrainableSubset::kLora);
  Tensor made = session_.empty(shape, follows ? options_.dtype : dtype);
  buffers_.push_back({path_ + std::string(name), made});
  return made;
}

Tensor Builder::adapter_parameter(std::string name, const Shape& shape, DType dtype) {
  const ComponentScope scope(session_, Component::kAdapterParameters);
  Tensor made = make(shape, dtype);
  made.set_requires_grad(true);
  parameters_.push_back({std::move(name), made, block_});
  add_checked(parameter_count_, shape.elements(), parameters_.back().name, "");
  return made;
}

void Builder::after_base(std::function<void()> make_later) {
  after_base_.emplace_back([this, block = block_, make_later = std::move(make_later)] {
    const Scoped<std::int64_t> place(block_, block);
    make_later();
  });
}

void Builder::begin_block(std::int64_t width) {
  block_ = block_count_++;
  const std::int64_t rank = options_.adapter_rank;
  if (rank == 0 || width == 0 || frozen_depth_ > 0) return;
  auto adapter = std::make_shared<BlockAdapter>();
  block_adapters_.resize(static_cast<std::size_t>(block_count_));
  block_adapters_.back() = adapter;
  after_base([this, adapter, width, rank, path = path_] {
    adapter->down = adapter_parameter(path + "adapter.down.weight", {rank, width}, options_.dtype);
    adapter->down_bias = adapter_parameter(path + "adapter.down.bias", {rank}, options_.dtype);
    adapter->up = adapter_parameter(path + "adapter.up.weight", {width, rank}, options_.dtype);
    adapter->up_bias = adapter_parameter(path + "adapter.up.bias", {width}, options_.dtype);
  });
}

std::shared_ptr<const BlockAdapter> Builder::block_adapter(std::int64_t block) const {
  const auto index = static_cast<std::size_t>(block);
  return index < block_adapters_.size() ? block_adapters_[index] : nullptr;
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

PathScope::PathScope(Builder& builder, std::string_view name)
    : builder_(builder), length_(builder.path_.size()) {
  builder_.path_.append(name).push_back('.');
}

PathScope::PathScope(Builder& builder, std::string_view name, std::int64_t index)
    : builder_(builder), length_(builder.path_.size()) {
  fmt::format_to(std::back_inserter(builder_.path_), "{}.{}.", name, index);
}

}  // namespace memfathom
