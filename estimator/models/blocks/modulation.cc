#include "estimator/models/blocks/modulation.h"

#include <vector>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/norm.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

Tensor modulated_norm(const Tensor& x, const Tensor& scale, const Tensor& shift) {
  Tensor normed = layer_norm(x, {}, {});
  {
    const Tensor factor = add_scalar(unsqueeze(scale, 1), 1);
    normed = mul(normed, factor);
  }
  return add(normed, unsqueeze(shift, 1));
}

Tensor gated_sum(const Tensor& x, const Tensor& gate, const Tensor& change) {
  const Tensor scaled = mul(unsqueeze(gate, 1), change);
  return add(x, scaled);
}

Tensor rotated_in_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor turned;
  const std::vector<Tensor> pairs =
      unbind(reshape(x, {x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2}), -1);
  {
    const Tensor parts[] = {neg(pairs[1]), pairs[0]};
    turned = flatten(stack(parts, -1), 3);
  }
  Tensor left = to_dtype(x, DType::kFp32);
  left = mul(left, cos);
  Tensor right = to_dtype(turned, DType::kFp32);
  right = mul(right, sin);
  left = add(left, right);
  right.reset();
  return to_dtype(left, x.dtype());
}

}  // namespace memfathom
