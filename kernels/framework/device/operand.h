// Operand: a device's view of a tensor: address, type, extents and strides.
#pragma once

#include "core/dtype.h"
#include "core/shape.h"

namespace memfathom {

// Strides count elements. A stride of 0 repeats an element (broadcasting). `data` is null for an
// absent operand.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::kFp32;
  Shape shape;
  Shape strides;

  explicit operator bool() const { return data != nullptr; }
};

}  // namespace memfathom
