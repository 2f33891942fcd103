// Gathering: rows of a matrix picked by index, as advanced indexing does it, and added back.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// x[index]: rows of x. The gradient is a tensor of zeros of x's size into which rows are added.
Tensor gather_rows(const Tensor& x, const Tensor& index);

// whole.index_add_(0, index, rows)
void add_rows(Tensor& whole, const Tensor& index, const Tensor& rows);

}  // namespace memfathom
