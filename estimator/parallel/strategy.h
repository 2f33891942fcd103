// Strategy: how parameters, gradients and optimizer states are kept when a job shards or offloads
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "estimator/job/job.h"
#include "estimator/job_model/built_model.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

class Strategy : public StorageObserver, public LoopObserver {
 public:
  // Takes the built model over; what it gives back is what the optimizer steps over, on the device
  // or on the host.
  virtual std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) = 0;
  // What the library does differently from PyTorch's optimizers.
  virtual void adjust(OptimizerOptions&) const {}

  void before_use(Storage&) override {}
  void gradient_ready(TensorImpl&) override {}
};

// GPUs that hold copies or shards of the same model: num_gpus over tensor and pipeline parallelism.
std::int64_t data_parallel_size(const ParallelSpec& parallel);
// GPUs among which FSDP or ZeRO divides the states.
std::int64_t shard_count(const ParallelSpec& parallel);

BuildOverrides build_overrides(const Job& job);

// offload.parameters without FSDP or ZeRO-3, which have their own: frozen weights lie on the host.
bool hosts_weights(const Job& job);

// Null when there is nothing to share and nothing to offload. `host` takes what is offloaded.
std::unique_ptr<Strategy> make_strategy(Session& device, Session& host, const Job& job);

// The job's communicators, each by its ranks; none has fewer than two.
std::vector<std::int64_t> communicator_ranks(const ParallelSpec& parallel);
// What NCCL takes for the job's communicators, outside the allocator.
Bytes communicator_bytes(const ParallelSpec& parallel);

// What the strategy takes for granted, in sentences.
void note_assumptions(const Job& job, std::vector<std::string>& assumptions,
                      std::vector<std::string>& not_modelled);

}  // namespace memfathom
