#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"
#include "kernels/framework/device/attention_query.h"

namespace memfathom::selftest {
namespace {

struct Variant {
  const char* name;
  std::int64_t heads, kv_heads, queries, keys, width;
  bool causal, masked;
  double dropout;
};

// [batch, heads, length, width] in a projection's layout: [batch, length, heads, width] in memory.
Operand heads_of(Tensors& t, DType type, std::int64_t heads, std::int64_t length,
                 std::int64_t width) {
  Operand operand = t.uniform(type, {2, length, heads, width});
  std::swap(operand.shape[1], operand.shape[2]);
  std::swap(operand.strides[1], operand.strides[2]);
  return operand;
}

Bytes wanted(const Device& device, const AttentionCall& call) {
  return device.workspaces().attention(query_of(call)).bytes;
}

void compare_variant(Harness& harness, const Variant& v, DType type, AttentionKernel kernel) {
  Tensors t;
  AttentionCall call;
  call.kernel = kernel;
  call.causal = v.causal;
  call.scale = 0.3;
  call.dropout = v.dropout;
  call.seed = 7;
  call.offset = 99;
  call.q = heads_of(t, type, v.heads, v.queries, v.width);
  call.k = heads_of(t, type, v.kv_heads, v.keys, v.width);
  call.v = heads_of(t, type, v.kv_heads, v.keys, v.width);
  if (v.masked) call.mask = t.uniform(type, {2, 1, v.queries, v.keys});
  call.out = heads_of(t, type, v.heads, v.queries, v.width);
  call.logsumexp = t.filled(type == DType::kFp64 ? type : DType::kFp32, {2, v.heads, v.queries}, 0);
  const std::string name = fmt::format("attention {} {} {}", v.name, to_string(type),
                                       kernel == AttentionKernel::kFlash ? "flash" : "efficient");
  harness.compare_with_workspace(name, call, wanted,
                                 {&AttentionCall::out, &AttentionCall::logsumexp}, {});
  run_reference(call);
  call.backward = true;
  call.dout = heads_of(t, type, v.heads, v.queries, v.width);
  call.dq = heads_of(t, type, v.heads, v.queries, v.width);
  call.dk = heads_of(t, type, v.kv_heads, v.keys, v.width);
  call.dv = heads_of(t, type, v.kv_heads, v.keys, v.width);
  harness.compare_with_workspace(name + " backward", call, wanted,
                                 {&AttentionCall::dq, &AttentionCall::dk, &AttentionCall::dv}, {});
}

}  // namespace

void attention_cases(Harness& harness) {
  const Variant variants[] = {{"plain", 2, 2, 5, 5, 8, false, false, 0},
                              {"causal", 2, 2, 6, 6, 8, true, false, 0},
                              {"grouped", 4, 2, 5, 5, 6, true, false, 0},
                              {"grouped eights", 4, 2, 5, 5, 8, true, false, 0},
                              {"across", 2, 2, 3, 7, 8, false, false, 0},
                              {"masked", 2, 2, 5, 4, 8, false, true, 0},
                              {"with dropout", 2, 2, 5, 5, 8, false, false, 0.25},
                              {"wide", 1, 1, 3, 3, 130, true, false, 0}};
  for (const Variant& variant : variants) {
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16, DType::kFp16}) {
      compare_variant(harness, variant, type, AttentionKernel::kEfficient);
      if (!variant.masked) compare_variant(harness, variant, type, AttentionKernel::kFlash);
    }
  }
}

}  // namespace memfathom::selftest
