// Design: random convolutions of the kinds networks are made of, through which the fitted table is
// learnt and judged.
#pragma once

#include <cstdint>
#include <random>

#include "core/workspace.h"

namespace memfathom {

struct DesignClass {
  ConvolutionKind kind;
  DType dtype;
  bool channels_last;
};

// A convolution that PyTorch would give to cuDNN and whose tensors stay below 2 GiB.
ConvolutionQuery draw_convolution(std::mt19937_64& random, const DesignClass& of);

}  // namespace memfathom
