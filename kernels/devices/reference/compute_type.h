// Compute type: the arithmetic type of a call.
#pragma once

#include <initializer_list>

#include "kernels/framework/device/operand.h"

namespace memfathom {

inline bool any_of_type(std::initializer_list<const Operand*> operands, DType type) {
  for (const Operand* operand : operands) {
    if (*operand && operand->dtype == type) return true;
  }
  return false;
}

// fp64 for fp64 operands and for wide integers, which fp32 would round.
inline bool computes_in_double(std::initializer_list<const Operand*> operands) {
  return any_of_type(operands, DType::kFp64) || any_of_type(operands, DType::kInt64) ||
         any_of_type(operands, DType::kInt32);
}

// Calls `work` with a value of the arithmetic type.
template <typename Work>
void in_compute_type(bool in_double, Work&& work) {
  if (in_double) {
    work(double{});
  } else {
    work(float{});
  }
}

}  // namespace memfathom
