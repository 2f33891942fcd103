// Embedding: lookups in an embedding table.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// table [vocabulary, size], int64 indices of any shape; the gradient of the table is dense.
Tensor embedding(const Tensor& table, const Tensor& index);

}  // namespace memfathom
