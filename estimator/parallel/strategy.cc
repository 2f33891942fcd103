#include "estimator/parallel/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/parallel/fully_sharded.h"
#include "estimator/parallel/replicated.h"
#include "estimator/parallel/zero.h"

namespace memfathom {
namespace {

// Seen per communicator on four A100 with NVLink (NCCL issue 964); it depends on channels and
// topology.
constexpr Bytes kCommunicatorOfTwo{544000000};
constexpr Bytes kCommunicatorOfMore{688000000};

Bytes communicator(std::int64_t ranks) {
  return ranks == 2 ? kCommunicatorOfTwo : kCommunicatorOfMore;
}

bool uses_zero(const ParallelSpec& parallel) { return parallel.zero_stage > 0; }
bool uses_fsdp(const ParallelSpec& parallel) { return parallel.fsdp != Fsdp::kNone; }

}  // namespace

std::int64_t data_parallel_size(const ParallelSpec& parallel) {
  return std::max<std::int64_t>(
      1, parallel.num_gpus / std::max<std::int64_t>(1, parallel.tensor * parallel.pipeline));
}

std::int64_t shard_count(const ParallelSpec& parallel) {
  const std::int64_t size = data_parallel_size(parallel);
  return parallel.fsdp == Fsdp::kHybrid ? std::min(size, parallel.gpus_per_node) : size;
}

bool hosts_weights(const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  if (!parallel.offload_parameters) return false;
  return job.training.mode != Mode::kTrain || !(uses_zero(parallel) || uses_fsdp(parallel));
}

BuildOverrides build_overrides(const Job& job) {
  BuildOverrides plan;
  plan.deferred = hosts_weights(job);
  if (job.training.mode != Mode::kTrain) return plan;
  if (uses_zero(job.parallel)) {
    plan.deferred = true;
    plan.compute = job.training.precision.autocast.value_or(job.training.precision.parameters);
  } else if (uses_fsdp(job.parallel)) {
    plan.deferred = true;
    plan.compute = job.training.precision.autocast;
  }
  return plan;
}

std::unique_ptr<Strategy> make_strategy(Session& device, Session& host, const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  if (job.training.mode != Mode::kTrain)
    return hosts_weights(job) ? std::make_unique<Replicated>(device, host, job) : nullptr;
  if (parallel.zero_stage == 3)
    return std::make_unique<ZeroPartitionedParameters>(device, host, job);
  if (uses_zero(parallel)) return std::make_unique<ZeroPartitionedStates>(device, host, job);
  if (uses_fsdp(parallel)) return std::make_unique<FullySharded>(device, host, job);
  if (data_parallel_size(parallel) > 1 || parallel.offload_optimizer || hosts_weights(job))
    return std::make_unique<Replicated>(device, host, job);
  return nullptr;
}

std::vector<std::int64_t> communicator_ranks(const ParallelSpec& parallel) {
  const std::int64_t data = data_parallel_size(parallel);
  std::vector<std::int64_t> ranks{data, parallel.tensor, parallel.pipeline};
  if (parallel.fsdp == Fsdp::kHybrid && data > parallel.gpus_per_node)
    ranks.push_back(data / parallel.gpus_per_node);
  std::erase_if(ranks, [](std::int64_t size) { return size < 2; });
  return ranks;
}

Bytes communicator_bytes(const ParallelSpec& parallel) {
  Bytes bytes;
  for (const std::int64_t ranks : communicator_ranks(parallel)) bytes += communicator(ranks);
  return bytes;
}

void note_assumptions(const Job& job, std::vector<std::string>& assumptions,
                      std::vector<std::string>& not_modelled) {
  const ParallelSpec& parallel = job.parallel;
  if (job.training.compiled) {
    not_modelled.emplace_back(
        "training.compile: torch.compile chooses itself what is kept for backward, and its CUDA "
        "graphs hold pools of their own; the estimate is of eager execution");
  }
  if (job.training.paged_optimizer) {
    not_modelled.emplace_back(
        "paged optimizer states are counted as if they stayed on the GPU; they leave it under "
        "pressure");
  }
  if (job.training.mode == Mode::kTrain &&
      job.training.optimizer.name == OptimizerName::kAdafactor) {
    not_modelled.emplace_back(
        "adafactor is counted as PyTorch's; that of transformers and its Trainer has fp32 states "
        "and works on fp32 copies of one parameter at a time");
  }
  if (hosts_weights(job)) {
    assumptions.emplace_back(
        "offload.parameters: frozen weights stay on the host and are copied to the GPU layer by "
        "layer, as accelerate's hooks do; copies saved by autograd stay until their backward pass");
  }
  if (job.training.mode != Mode::kTrain) {
    if (uses_zero(parallel) || uses_fsdp(parallel)) {
      not_modelled.emplace_back(
          "sharded parameters in inference: every GPU is taken to hold the whole model");
    }
    return;
  }
  if (uses_zero(parallel)) {
    assumptions.push_back(
        fmt::format("DeepSpeed ZeRO-{}: parameters and adapters in the compute type, partitioned "
                    "fp32 copies, DeepSpeed's fused optimizer, reduce bucket of {} elements; the "
                    "figures are those of the rank that uses most",
                    parallel.zero_stage, parallel.zero.reduce_bucket_size));
  }
  if (uses_fsdp(parallel)) {
    assumptions.push_back(fmt::format(
        "FSDP{} shards each repeated block and a root unit over {} GPUs; trainable and frozen "
        "parameters are in separate flat parameters; {}; the whole model is never on one GPU",
        parallel.fsdp_version, shard_count(parallel),
        parallel.fsdp_version == 1 ? "they come to the GPU and are broadcast block by block"
                                   : "they are made as shards"));
    if (parallel.fsdp_version == 1 && !parallel.limit_all_gathers.value_or(true)) {
      assumptions.emplace_back(
          "limit_all_gathers is off (PyTorch before 2.1): the host queues a whole pass ahead of "
          "the "
          "GPU, and every gathered block of a pass has memory of its own; between none and two "
          "passes are possible");
    }
    if (parallel.offload_optimizer && !parallel.offload_parameters) {
      not_modelled.emplace_back(
          "offload.optimizer without offload.parameters under FSDP, which moves both or none");
    }
  }
  if (parallel.offload_parameters && uses_zero(parallel) && parallel.zero_stage != 3)
    not_modelled.emplace_back("offload.parameters, which ZeRO has in stage 3 only");
}

}  // namespace memfathom
