// operands: the operands of each call, so that all of them can be copied between host and device.
#pragma once

#include <vector>

#include "kernels/framework/device/calls.h"

namespace memfathom::selftest {

inline std::vector<Operand*> operands_of(ElementwiseCall& c) { return {&c.out, &c.a, &c.b, &c.c}; }
inline std::vector<Operand*> operands_of(ReduceCall& c) { return {&c.out, &c.in}; }
inline std::vector<Operand*> operands_of(SoftmaxCall& c) { return {&c.out, &c.in, &c.y}; }
inline std::vector<Operand*> operands_of(NormCall& c) {
  return {&c.x,           &c.weight, &c.bias, &c.y,       &c.mean, &c.rstd, &c.running_mean,
          &c.running_var, &c.dy,     &c.dx,   &c.dweight, &c.dbias};
}
inline std::vector<Operand*> operands_of(NllCall& c) {
  return {&c.log_probabilities, &c.target, &c.loss, &c.total_weight, &c.grad_loss, &c.grad_input};
}
inline std::vector<Operand*> operands_of(DropoutCall& c) { return {&c.x, &c.y, &c.mask}; }
inline std::vector<Operand*> operands_of(GemmCall& c) { return {&c.out, &c.a, &c.b, &c.bias}; }
inline std::vector<Operand*> operands_of(ConvolutionCall& c) {
  return {&c.x, &c.w, &c.y, &c.dy, &c.dx, &c.dw, &c.workspace};
}
inline std::vector<Operand*> operands_of(PoolCall& c) {
  return {&c.x, &c.y, &c.indices, &c.dy, &c.dx};
}
inline std::vector<Operand*> operands_of(UpsampleCall& c) { return {&c.in, &c.out}; }
inline std::vector<Operand*> operands_of(FftCall& c) { return {&c.in, &c.out, &c.workspace}; }
inline std::vector<Operand*> operands_of(AttentionCall& c) {
  return {&c.q,    &c.k,  &c.v,  &c.mask, &c.out,      &c.logsumexp,
          &c.dout, &c.dq, &c.dk, &c.dv,   &c.workspace};
}
inline std::vector<Operand*> operands_of(EmbeddingCall& c) { return {&c.table, &c.index, &c.out}; }
inline std::vector<Operand*> operands_of(OptimizerCall& c) {
  return {&c.parameter, &c.gradient, &c.state1, &c.state2};
}

}  // namespace memfathom::selftest
