// Replicated: every GPU has the whole model: DDP's buckets beside the gradients, and optimizer
// states or frozen weights that are on the host.
#pragma once

#include <unordered_map>
#include <vector>

#include "estimator/parallel/cpu_offload.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {

class Replicated final : public Strategy {
 public:
  Replicated(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void gradient_ready(TensorImpl& leaf) override;
  void before_forward() override;
  void before_step() override;
  void clear_gradients() override;

 private:
  void make_buckets();

  Session& device_;
  Session& host_;
  bool has_buckets_;
  bool views_;
  bool offloads_;
  bool trains_;
  bool hosts_weights_;
  HostedWeights hosted_;
  int passes_ = 0;
  std::vector<Tensor> leaves_;
  std::vector<Tensor> copies_;  // on the host, of offloaded parameters
  std::vector<Tensor> buckets_;
  struct BucketSlot {
    std::size_t bucket = 0;
    std::int64_t offset = 0;
  };
  std::unordered_map<const TensorImpl*, BucketSlot> slots_;
};

}  // namespace memfathom
