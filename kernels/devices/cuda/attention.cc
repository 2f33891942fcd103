#include "kernels/devices/cuda/attention.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/devices/cuda/cudnn/attention_graph.h"
#include "kernels/devices/cuda/cudnn/execute.h"
#include "kernels/framework/device/attention_query.h"

namespace memfathom::cuda {
namespace {

constexpr std::int64_t kMaxFusedHeadSize = 128;
constexpr Bytes kAlignment{16};  // of every tensor, as declared in the graph

bool is_16bit(DType type) { return type == DType::kFp16 || type == DType::kBf16; }

// Lengths for which cuDNN computes something else. Up to 9.15.0 these are the lengths that are not
// multiples of 128, which PyTorch and NVIDIA's frontend avoid too. Before 9.26, a backward pass on
// 9.0 without a causal mask that ends in half a tile of 128 keys gives NaN (pytorch#196678).
bool hits_length_bug(const AttentionQuery& query, int compute_capability) {
  constexpr std::size_t kFirstWithAnyLength = 91501;
  constexpr std::size_t kFirstWithHalfTiles = 92600;
  const std::size_t version = cudnnGetVersion();
  if (version < kFirstWithAnyLength && (query.q[2] % 128 != 0 || query.k[2] % 128 != 0))
    return true;
  return version < kFirstWithHalfTiles && compute_capability == 90 && query.backward &&
         !query.causal && query.k[2] % 128 == 64;
}

// NVIDIA's frontend disables attention on 9.10.0 and 9.10.1, whose engines have known bugs.
bool is_broken_version() {
  const std::size_t version = cudnnGetVersion();
  return version == 91000 || version == 91001;
}

// PyTorch does not use cuDNN for a single key. A single query is wrong on 10.x and 11.x from 9.19
// to 9.25.0 (pytorch#193893), its gradients on 9.0 are NaN still in 9.26 (cudnn-frontend#1072).
// Grid dimensions end at 65535.
bool is_outside(const AttentionQuery& query) {
  constexpr std::int64_t kMost = 65535;
  return query.k[2] == 1 || query.q[2] == 1 || query.q[0] > kMost || query.q[1] > kMost;
}

bool is_fusable(const AttentionQuery& query, int compute_capability) {
  const std::int64_t size = query.q[3];
  return is_16bit(query.dtype) && size <= kMaxFusedHeadSize && size % 8 == 0 &&
         !hits_length_bug(query, compute_capability) && !is_broken_version() && !is_outside(query);
}

// cuDNN's dropout uses a different random sequence from ours, and PyTorch runs masks on the
// memory-efficient kernel: our own kernels compute both.
bool is_fusable(const AttentionCall& call) {
  if (call.kernel != AttentionKernel::kFlash || call.mask || call.dropout > 0) return false;
  const auto fits = [](const Operand* operand) {
    const auto address = reinterpret_cast<std::uintptr_t>(operand->data);
    return *operand && operand->strides[-1] == 1 &&
           address % static_cast<std::uintptr_t>(kAlignment.count()) == 0;
  };
  std::vector<const Operand*> operands{&call.q, &call.k, &call.v, &call.out};
  if (call.backward) operands.insert(operands.end(), {&call.dout, &call.dq, &call.dk, &call.dv});
  return std::all_of(operands.begin(), operands.end(), fits);
}

// NVIDIA's frontend masks scores with the lowest number up to cuDNN 9.9.
float masked_score() {
  constexpr std::size_t kFirstVersionWithInfinity = 91000;
  return cudnnGetVersion() < kFirstVersionWithInfinity ? std::numeric_limits<float>::lowest()
                                                       : -std::numeric_limits<float>::infinity();
}

Bytes provided_workspace(const AttentionCall& call) {
  return call.workspace ? size_of(call.workspace.shape, call.workspace.dtype) : Bytes{};
}

}  // namespace

// An engine that fails to build counts as none; if only memory is missing, the next call tries
// again.
FusedAttention::Planned FusedAttention::make_plan(const AttentionQuery& query) {
  const cudnn::DeviceProperties& properties = dnn_.properties();
  try {
    const cudnn::Graph graph(query);
    cudnn::ExecutionPlan plan(cudnn::first_engine(graph, properties), properties);
    const Bytes workspace =
        plan.workspace().rounded_up(kAlignment) + cudnn::scratch_of(query).total();
    return {std::move(plan), workspace};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kOutOfMemory) throw;
    return {};
  }
}

FusedAttention::Planned& FusedAttention::planned(const AttentionQuery& query) {
  return plans_.get(to_string(query), [&] { return make_plan(query); });
}

std::optional<Bytes> FusedAttention::workspace(const AttentionQuery& query) {
  if (!is_fusable(query, compute_capability_)) return std::nullopt;
  const Planned& plan = planned(query);
  return plan.plan ? std::optional(plan.workspace) : std::nullopt;
}

bool FusedAttention::takes(const AttentionCall& call) {
  if (!is_fusable(call)) return false;
  const AttentionQuery query = query_of(call);
  if (!is_fusable(query, compute_capability_)) return false;
  const Planned& plan = planned(query);
  return plan.plan && plan.workspace <= provided_workspace(call);
}

bool FusedAttention::run(const AttentionCall& call) {
  const AttentionQuery query = query_of(call);
  Planned& kept = planned(query);
  const cudnn::ExecutionPlan& plan = kept.plan.value();
  auto scale = static_cast<float>(call.scale);
  float masked = masked_score();
  float one = 1;
  std::vector<cudnn::TensorBinding> operands{{cudnn::kQ, call.q.data},
                                             {cudnn::kK, call.k.data},
                                             {cudnn::kV, call.v.data},
                                             {cudnn::kO, call.out.data},
                                             {cudnn::kStats, call.logsumexp.data},
                                             {cudnn::kScale, &scale}};
  if (call.causal) operands.push_back({cudnn::kMasked, &masked});
  if (call.backward) {
    char* scratch =
        static_cast<char*>(call.workspace.data) + plan.workspace().rounded_up(kAlignment).count();
    operands.insert(operands.end(),
                    {{cudnn::kDO, call.dout.data},
                     {cudnn::kDQ, call.dq.data},
                     {cudnn::kDK, call.dk.data},
                     {cudnn::kDV, call.dv.data},
                     {cudnn::kOne, &one},
                     {cudnn::kDQSums, scratch},
                     {cudnn::kRowSums, scratch + cudnn::scratch_of(query).dq_sums.count()}});
  }
  try {
    cudnn::execute(dnn_.handle(), plan, operands,
                   plan.workspace() > Bytes{} ? call.workspace.data : nullptr);
  } catch (const cudnn::StatusError& error) {
    if (!cudnn::is_recoverable(error.status()) || error.kind() == ErrorKind::kOutOfMemory) throw;
    kept.plan.reset();
    return false;
  }
  return true;
}

}  // namespace memfathom::cuda
