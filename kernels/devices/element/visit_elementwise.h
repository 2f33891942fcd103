// visit_elementwise: calls `visit` with the functor of an element-wise operation.
#pragma once

#include "kernels/devices/element/activations.h"
#include "kernels/devices/element/arithmetic.h"
#include "kernels/devices/element/losses.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::element {

template <typename Visit>
MEMFATHOM_HD void visit_elementwise(Elementwise op, Visit&& visit) {
  switch (op) {
    case Elementwise::kFill: return visit(Fill{});
    case Elementwise::kCopy: return visit(Copy{});
    case Elementwise::kAdd: return visit(Add{});
    case Elementwise::kAddScalar: return visit(AddScalar{});
    case Elementwise::kMul: return visit(Mul{});
    case Elementwise::kMulConjugate: return visit(MulConjugate{});
    case Elementwise::kMulScalar: return visit(MulScalar{});
    case Elementwise::kDiv: return visit(Div{});
    case Elementwise::kRealOverScalar: return visit(RealOverScalar{});
    case Elementwise::kNeg: return visit(Neg{});
    case Elementwise::kPow: return visit(Pow{});
    case Elementwise::kPowBackward: return visit(PowBackward{});
    case Elementwise::kExp: return visit(Exp{});
    case Elementwise::kLog: return visit(Log{});
    case Elementwise::kSqrt: return visit(Sqrt{});
    case Elementwise::kRsqrt: return visit(Rsqrt{});
    case Elementwise::kRsqrtBackward: return visit(RsqrtBackward{});
    case Elementwise::kSin: return visit(Sin{});
    case Elementwise::kCos: return visit(Cos{});
    case Elementwise::kTanh: return visit(Tanh{});
    case Elementwise::kTanhBackward: return visit(TanhBackward{});
    case Elementwise::kSigmoid: return visit(Sigmoid{});
    case Elementwise::kSigmoidBackward: return visit(SigmoidBackward{});
    case Elementwise::kRelu: return visit(Relu{});
    case Elementwise::kThresholdBackward: return visit(ThresholdBackward{});
    case Elementwise::kGelu: return visit(Gelu{});
    case Elementwise::kGeluBackward: return visit(GeluBackward{});
    case Elementwise::kGeluTanh: return visit(GeluTanh{});
    case Elementwise::kGeluTanhBackward: return visit(GeluTanhBackward{});
    case Elementwise::kSilu: return visit(Silu{});
    case Elementwise::kSiluBackward: return visit(SiluBackward{});
    case Elementwise::kMish: return visit(Mish{});
    case Elementwise::kMishBackward: return visit(MishBackward{});
    case Elementwise::kLeakyRelu: return visit(LeakyRelu{});
    case Elementwise::kLeakyReluBackward: return visit(LeakyReluBackward{});
    case Elementwise::kElu: return visit(Elu{});
    case Elementwise::kEluBackward: return visit(EluBackward{});
    case Elementwise::kSoftplus: return visit(Softplus{});
    case Elementwise::kSoftplusBackward: return visit(SoftplusBackward{});
    case Elementwise::kHardtanh: return visit(Hardtanh{});
    case Elementwise::kHardtanhBackward: return visit(HardtanhBackward{});
    case Elementwise::kHardswish: return visit(Hardswish{});
    case Elementwise::kHardswishBackward: return visit(HardswishBackward{});
    case Elementwise::kPrelu: return visit(Prelu{});
    case Elementwise::kPreluBackwardInput: return visit(PreluBackwardInput{});
    case Elementwise::kPreluBackwardWeight: return visit(PreluBackwardWeight{});
    case Elementwise::kMaskedScale: return visit(MaskedScale{});
    case Elementwise::kWhere: return visit(Where{});
    case Elementwise::kNotEqualScalar: return visit(NotEqualScalar{});
    case Elementwise::kMseBackward: return visit(MseBackward{});
    case Elementwise::kSquaredDifference: return visit(SquaredDifference{});
    case Elementwise::kAbsDifference: return visit(AbsDifference{});
    case Elementwise::kL1Backward: return visit(L1Backward{});
    case Elementwise::kAbs: return visit(Abs{});
    case Elementwise::kSign: return visit(Sign{});
    case Elementwise::kSmoothL1: return visit(SmoothL1{});
    case Elementwise::kSmoothL1Backward: return visit(SmoothL1Backward{});
    case Elementwise::kBceWithLogits: return visit(BceWithLogits{});
    case Elementwise::kBceWithLogitsBackward: return visit(BceWithLogitsBackward{});
    case Elementwise::kBce: return visit(Bce{});
    case Elementwise::kBceBackward: return visit(BceBackward{});
  }
}

// The operations that support complex operands; false for any other.
template <typename Visit>
MEMFATHOM_HD bool visit_complex_elementwise(Elementwise op, Visit&& visit) {
  if (op == Elementwise::kFill) {
    visit(Fill{});
  } else if (op == Elementwise::kCopy) {
    visit(Copy{});
  } else if (op == Elementwise::kAdd) {
    visit(Add{});
  } else if (op == Elementwise::kMul) {
    visit(Mul{});
  } else if (op == Elementwise::kMulConjugate) {
    visit(MulConjugate{});
  } else if (op == Elementwise::kMulScalar) {
    visit(MulScalar{});
  } else {
    return false;
  }
  return true;
}

}  // namespace memfathom::element
