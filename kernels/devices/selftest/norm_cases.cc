#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

struct Kind {
  const char* name;
  Norm op;
  Shape x;
  std::int64_t groups, statistics, features;
  bool training;
};

void compare_kind(Harness& harness, const Kind& kind, DType type, bool affine) {
  Tensors t;
  NormCall call;
  call.op = kind.op;
  call.groups = kind.groups;
  call.training = kind.training;
  call.x = t.uniform(type, kind.x, -1, 3);
  call.y = t.filled(type, kind.x, 0);
  if (affine) {
    call.weight = t.uniform(type, {kind.features}, 0.5, 1.5);
    if (kind.op != Norm::kRms) call.bias = t.uniform(type, {kind.features});
  }
  const DType figures = type == DType::kFp64 ? DType::kFp64 : DType::kFp32;
  if (kind.op != Norm::kRms) call.mean = t.filled(figures, {kind.statistics}, 0);
  call.rstd = t.filled(figures, {kind.statistics}, 0);
  if (kind.op == Norm::kBatch) {
    call.running_mean = t.uniform(figures, {kind.features});
    call.running_var = t.uniform(figures, {kind.features}, 0.5, 1.5);
  }
  const std::string name =
      fmt::format("{} {}{}", kind.name, to_string(type), affine ? "" : " without weight");
  if (kind.op == Norm::kBatch && !kind.training) {
    harness.compare(name, call, {&NormCall::y});
  } else {
    harness.compare(name, call,
                    {&NormCall::y, &NormCall::mean, &NormCall::rstd, &NormCall::running_mean,
                     &NormCall::running_var});
  }
  run_reference(call);
  call.backward = true;
  call.y = {};
  call.dy = t.uniform(type, kind.x);
  call.dx = t.filled(type, kind.x, 0);
  if (affine) {
    call.dweight = t.filled(type, {kind.features}, 0);
    if (call.bias) call.dbias = t.filled(type, {kind.features}, 0);
  }
  harness.compare(name + " backward", call, {&NormCall::dx, &NormCall::dweight, &NormCall::dbias});
}

}  // namespace

void norm_cases(Harness& harness) {
  const Kind kinds[] = {{"layer norm", Norm::kLayer, {3, 4, 10}, 1, 12, 10, true},
                        {"rms norm", Norm::kRms, {5, 10}, 1, 5, 10, true},
                        {"group norm", Norm::kGroup, {2, 6, 3, 2}, 3, 6, 6, true},
                        {"batch norm", Norm::kBatch, {3, 4, 3, 2}, 1, 4, 4, true},
                        {"batch norm in evaluation", Norm::kBatch, {3, 4, 5}, 1, 4, 4, false}};
  for (const Kind& kind : kinds) {
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
      compare_kind(harness, kind, type, true);
      compare_kind(harness, kind, type, false);
    }
  }
}

}  // namespace memfathom::selftest
