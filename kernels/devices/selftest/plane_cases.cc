#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

void compare_pool(Harness& harness, const std::string& name, PoolCall call, const Shape& in,
                  const Shape& out, DType type) {
  Tensors t;
  call.x = t.uniform(type, in);
  call.y = t.filled(type, out, 0);
  if (call.op == Pool::kMax) call.indices = t.filled(DType::kInt64, out, 0);
  harness.compare(name, call, {&PoolCall::y, &PoolCall::indices});
  run_reference(call);
  call.backward = true;
  call.y = {};
  call.dy = t.uniform(type, out);
  call.dx = t.uniform(type, in);
  harness.compare(name + " backward", call, {&PoolCall::dx});
}

void pools(Harness& harness) {
  for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
    for (const Pool op : {Pool::kMax, Pool::kAverage}) {
      PoolCall call;
      call.op = op;
      call.kernel = {3, 2};
      call.stride = {2, 2};
      call.padding = {1, 0};
      const std::string name =
          fmt::format("{} pool {}", op == Pool::kMax ? "max" : "average", to_string(type));
      compare_pool(harness, name + " 2-D", call, {2, 3, 7, 6}, {2, 3, 4, 3}, type);
      call.count_include_pad = false;
      compare_pool(harness, name + " 2-D, padding not counted", call, {2, 3, 7, 6}, {2, 3, 4, 3},
                   type);
      call.kernel = call.stride = {2};
      call.padding = {0};
      compare_pool(harness, name + " 1-D", call, {2, 3, 8}, {2, 3, 4}, type);
      call.kernel = {2, 2, 2};
      call.stride = {1, 2, 1};
      call.padding = {0, 0, 1};
      compare_pool(harness, name + " 3-D", call, {1, 2, 3, 4, 3}, {1, 2, 2, 2, 4}, type);
    }
    PoolCall call;
    call.op = Pool::kAdaptiveAverage;
    compare_pool(harness, fmt::format("adaptive pool {}", to_string(type)), call, {2, 3, 7, 5},
                 {2, 3, 3, 2}, type);
  }
}

void upsamples(Harness& harness) {
  for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16}) {
    for (const Upsample op : {Upsample::kNearest, Upsample::kBilinear}) {
      for (const Shape& large : {Shape{2, 3, 8, 10}, Shape{2, 3, 7, 5}}) {
        Tensors t;
        const Shape small{2, 3, 4, 5};
        const std::string name = fmt::format("upsample {} {} to {}", static_cast<int>(op),
                                             to_string(type), to_string(large));
        harness.compare(name,
                        UpsampleCall{op, false, t.uniform(type, small), t.filled(type, large, 0)},
                        {&UpsampleCall::out});
        harness.compare(name + " backward",
                        UpsampleCall{op, true, t.uniform(type, large), t.filled(type, small, 0)},
                        {&UpsampleCall::out});
      }
    }
  }
}

}  // namespace

void plane_cases(Harness& harness) {
  pools(harness);
  upsamples(harness);
}

}  // namespace memfathom::selftest
