// Matrix products: linear layers (mm, addmm) and batched products, with cuBLAS's workspace.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// F.linear(x, weight [out, in], bias): addmm with a bias, mm without. Folds leading dimensions.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// torch.addmm(bias, x, weight [in, out]): GPT-2's Conv1D.
Tensor linear_transposed(const Tensor& x, const Tensor& weight, const Tensor& bias);
// a @ b: rank 2 with rank 2, or batched with equal (or broadcast) leading dimensions; folds and
// copies as PyTorch does.
Tensor matmul(const Tensor& a, const Tensor& b);
// Batched product of rank-3 tensors.
Tensor bmm(const Tensor& a, const Tensor& b);
// beta * input + alpha * a.b, batched; the input is broadcast (baddbmm).
Tensor mm(const Tensor& a, const Tensor& b);

}  // namespace memfathom
