// complex_copy: operands of Fourier transforms as dense arrays of floats, complex ones as pairs.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// Whether the operand already is such an array.
bool is_plain(const Operand& t);

std::int64_t floats_of(const Operand& t);

void copy_in(const Operand& t, float* to);

// Multiplies by the scale; where `in_place`, `from` is the operand's own memory.
void copy_out(const Operand& t, float* from, double scale, bool in_place);

}  // namespace memfathom::cpu
