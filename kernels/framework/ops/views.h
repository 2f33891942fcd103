// Views and joins: operations that rearrange tensors and copy memory exactly when PyTorch does.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// x.view(shape): throws Error(kInternal) when it would need a copy. One extent may be -1.
Tensor view(const Tensor& x, Shape shape);
// x.reshape(shape): a view where possible, else a view of a copy.
Tensor reshape(const Tensor& x, Shape shape);
Tensor flatten(const Tensor& x, int from);
Tensor transpose(const Tensor& x, int a, int b);
Tensor permute(const Tensor& x, std::initializer_list<int> order);
Tensor unsqueeze(const Tensor& x, int dim);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end);
Tensor select(const Tensor& x, int dim, std::int64_t index);

// x.split(sizes, dim), x.chunk(n, dim), x.unbind(dim): views; backward joins their gradients into
// one tensor.
std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim);
std::vector<Tensor> chunk(const Tensor& x, std::int64_t parts, int dim);
std::vector<Tensor> unbind(const Tensor& x, int dim);

Tensor cat(std::span<const Tensor> parts, int dim);
Tensor stack(std::span<const Tensor> parts, int dim);
// F.pad with zeros; pairs from the last dimension: [left, right, top, bottom, ...]. Negative values
// crop.
Tensor pad(const Tensor& x, std::span<const std::int64_t> pairs);
Tensor repeat_interleave_heads(const Tensor& x,
                               std::int64_t times);  // grouped k and v, as in HF's repeat_kv

}  // namespace memfathom
