#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

constexpr int kOperations = static_cast<int>(Elementwise::kBceBackward) + 1;

// Operands in (0.1, 0.9): the domain of logarithms, roots and probabilities. kNeg and the second
// range below add negative values.
ElementwiseCall call_of(Tensors& t, Elementwise op, DType type, double low, double high) {
  const Shape shape{3, 4, 5};
  ElementwiseCall call{op,
                       t.filled(type, shape, 0),
                       t.uniform(type, shape, low, high),
                       t.uniform(type, shape, low, high),
                       t.uniform(type, shape, low, high),
                       {0.7, 1.3, 0.5, 2.0}};
  using enum Elementwise;
  if (op == kFill) call.a = call.b = call.c = {};
  if (op == kWhere) call.a = t.uniform(DType::kBool, shape, 0, 2);
  if (op == kMaskedScale) call.b = t.uniform(DType::kBool, shape, 0, 2);
  if (op == kNotEqualScalar) call.out = t.filled(DType::kBool, shape, 0);
  if (op == kSoftplus || op == kSoftplusBackward) call.scalars = {2, 1, 0, 0};
  if (op == kHardtanh || op == kHardtanhBackward) call.scalars = {-0.3, 0.4, 0, 0};
  return call;
}

bool takes_signs(Elementwise op) {
  using enum Elementwise;
  static constexpr std::array kPositiveOnly{kLog,         kSqrt, kRsqrt,       kPow,
                                            kPowBackward, kBce,  kBceBackward, kDiv};
  return std::ranges::find(kPositiveOnly, op) == kPositiveOnly.end();
}

void every_operation(Harness& harness) {
  for (int i = 0; i < kOperations; ++i) {
    const auto op = static_cast<Elementwise>(i);
    Tensors t;
    harness.compare(fmt::format("elementwise {} fp32", i), call_of(t, op, DType::kFp32, 0.1, 0.9),
                    {&ElementwiseCall::out});
    if (takes_signs(op)) {
      harness.compare(fmt::format("elementwise {} fp32 signed", i),
                      call_of(t, op, DType::kFp32, -4, 4), {&ElementwiseCall::out});
    }
    harness.compare(fmt::format("elementwise {} fp64", i), call_of(t, op, DType::kFp64, 0.1, 0.9),
                    {&ElementwiseCall::out});
    harness.compare(fmt::format("elementwise {} bf16", i), call_of(t, op, DType::kBf16, 0.1, 0.9),
                    {&ElementwiseCall::out});
  }
}

void layouts(Harness& harness) {
  Tensors t;
  const Shape shape{3, 4, 5};
  harness.compare("add, broadcast over rows and strided",
                  ElementwiseCall{Elementwise::kAdd,
                                  t.strided(DType::kFp16, shape),
                                  t.strided(DType::kFp32, shape),
                                  repeated(t.uniform(DType::kFp16, shape), 1),
                                  {},
                                  {2, 0, 0, 0}},
                  {&ElementwiseCall::out});
  harness.compare("mul by a row of fewer dimensions",
                  ElementwiseCall{Elementwise::kMul,
                                  t.filled(DType::kFp32, shape, 0),
                                  t.uniform(DType::kFp32, shape),
                                  t.uniform(DType::kFp32, {5}),
                                  {},
                                  {}},
                  {&ElementwiseCall::out});
  harness.compare("copy of a transposed matrix",
                  ElementwiseCall{Elementwise::kCopy,
                                  t.filled(DType::kFp32, {7, 6}, 0),
                                  transposed(t.uniform(DType::kFp32, {6, 7})),
                                  {},
                                  {},
                                  {}},
                  {&ElementwiseCall::out});
  harness.compare("add in place",
                  [&] {
                    ElementwiseCall call{Elementwise::kAdd,
                                         t.uniform(DType::kFp32, shape),
                                         {},
                                         t.uniform(DType::kFp32, shape),
                                         {},
                                         {1, 0, 0, 0}};
                    call.a = call.out;
                    return call;
                  }(),
                  {&ElementwiseCall::out});
  const std::array<DType, 6> types{DType::kFp64, DType::kFp32,  DType::kFp16,
                                   DType::kBf16, DType::kInt64, DType::kInt32};
  for (const DType from : types) {
    for (const DType to : types) {
      harness.compare(fmt::format("copy {} to {}", to_string(from), to_string(to)),
                      ElementwiseCall{Elementwise::kCopy,
                                      t.filled(to, shape, 0),
                                      t.uniform(from, shape, -100, 100),
                                      {},
                                      {},
                                      {}},
                      {&ElementwiseCall::out});
    }
  }
  harness.compare("copy of large whole numbers",
                  ElementwiseCall{Elementwise::kCopy,
                                  t.filled(DType::kInt64, shape, 0),
                                  t.uniform(DType::kInt64, shape, 0, 1e15),
                                  {},
                                  {},
                                  {}},
                  {&ElementwiseCall::out});
}

void complex_operands(Harness& harness) {
  const Shape shape{4, 6};
  for (const Elementwise op :
       {Elementwise::kFill, Elementwise::kCopy, Elementwise::kAdd, Elementwise::kMul,
        Elementwise::kMulConjugate, Elementwise::kMulScalar}) {
    Tensors t;
    ElementwiseCall call{op,
                         t.filled(DType::kComplex64, shape, 0),
                         t.uniform(DType::kComplex64, shape),
                         t.uniform(DType::kComplex64, shape),
                         {},
                         {0.5, 0, 0, 0}};
    if (op == Elementwise::kFill) call.a = call.b = {};
    harness.compare(fmt::format("elementwise {} complex64", static_cast<int>(op)), call,
                    {&ElementwiseCall::out});
  }
  Tensors t;
  harness.compare("copy complex64 to its real part",
                  ElementwiseCall{Elementwise::kCopy,
                                  t.filled(DType::kFp32, shape, 0),
                                  t.uniform(DType::kComplex64, shape),
                                  {},
                                  {},
                                  {}},
                  {&ElementwiseCall::out});
}

void optimizers(Harness& harness) {
  for (const Optimizer op : {Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdamW,
                             Optimizer::kRmsprop, Optimizer::kAdagrad}) {
    for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp64}) {
      for (const std::int64_t step : {1, 7}) {
        Tensors t;
        const Shape shape{6, 5};
        OptimizerCall call;
        call.op = op;
        call.learning_rate = 0.05;
        call.weight_decay = 0.1;
        call.momentum = 0.9;
        call.step = step;
        call.parameter = t.uniform(type, shape);
        call.gradient = t.uniform(type, shape);
        call.state1 = t.uniform(type, shape, 0, 1);
        if (op != Optimizer::kSgd && op != Optimizer::kAdagrad)
          call.state2 = t.uniform(type, shape, 0, 1);
        harness.compare(
            fmt::format("optimizer {} {} step {}", static_cast<int>(op), to_string(type), step),
            call, {&OptimizerCall::parameter, &OptimizerCall::state1, &OptimizerCall::state2});
      }
    }
  }
}

void dropout(Harness& harness) {
  for (const double p : {0.1, 0.5}) {
    Tensors t;
    const Shape shape{9, 31};
    harness.compare(fmt::format("dropout {}", p),
                    DropoutCall{p, 42, 1234567890123, t.uniform(DType::kFp32, shape),
                                t.filled(DType::kFp32, shape, 0), t.filled(DType::kBool, shape, 0)},
                    {&DropoutCall::y, &DropoutCall::mask});
  }
}

}  // namespace

void elementwise_cases(Harness& harness) {
  every_operation(harness);
  layouts(harness);
  complex_operands(harness);
  optimizers(harness);
  dropout(harness);
}

}  // namespace memfathom::selftest
