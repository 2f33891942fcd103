// Fourier transforms and the operations that spectral convolutions consist of.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// torch.fft.rfftn over the last `dims` dimensions, and its inverse to the given extents.
Tensor rfftn(const Tensor& x, int dims);
Tensor irfftn(const Tensor& x, const Shape& extents);

// fftshift / ifftshift over dimension `dim`: a copy.
Tensor roll(const Tensor& x, std::span<const int> dims, bool inverse);

// A rectangle of a tensor: begin and end per dimension.
struct Region {
  Shape begin, end;
};

// base[region] = value, in place; afterwards `base` has the new history.
void copy_into_region(Tensor& base, const Region& region, const Tensor& value);

// x[region] as successive slices, one per dimension that the region restricts.
Tensor slice_region(const Tensor& x, const Region& region);

// einsum "bi...,io...->bo...": channels are contracted separately for each mode.
Tensor contract_modes(const Tensor& x, const Tensor& weight);

}  // namespace memfathom
