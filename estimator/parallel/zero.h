// Zero: DeepSpeed's ZeRO: 16-bit parameters, fp32 copies and optimizer states in partitions,
// gradients through its buckets.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "estimator/parallel/flat_group.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {

// The fp32 partition that a rank updates, and how its gradient gets there; the same in all stages.
class MasterPartitions {
 public:
  MasterPartitions(Session& device, Session& host, const Job& job);

  void add(const FlatGroup& group);
  const std::vector<Tensor>& tensors() const { return masters_; }
  // step(): the partition's gradient in fp32, on the host if the optimizer is there.
  void widen_gradients();
  bool on_host() const { return on_host_; }
  std::int64_t count() const { return count_; }

 private:
  Session& device_;
  Session& host_;
  bool on_host_;
  std::int64_t count_;
  std::int64_t at_once_ =
      std::numeric_limits<std::int64_t>::max();  // elements whose gradients are widened together
  std::vector<Tensor> masters_;
  std::vector<ModuleIndex> modules_;
};

// Stages 1 and 2: parameters stay whole.
class ZeroPartitionedStates final : public Strategy {
 public:
  ZeroPartitionedStates(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void adjust(OptimizerOptions& options) const override;
  void gradient_ready(TensorImpl& leaf) override;
  void before_backward() override;
  void after_backward() override;
  void before_step() override;
  void after_step() override;
  void clear_gradients() override;

 private:
  // The gradient's part in the last rank's partition, which fills first: the heaviest rank's.
  std::int64_t own_elements(const FlatGroup& group, const TensorImpl& leaf) const;

  Session& device_;
  ZeroBuffers buffers_;
  int stage_;
  bool form_given_;
  MasterPartitions masters_;
  std::vector<FlatGroup> groups_;
  std::vector<Tensor> buckets_;  // of this backward
  std::unordered_map<const TensorImpl*, Tensor> partition_gradients_;
};

// Stage 3: parameters are partitioned too, and fetched module by module.
class ZeroPartitionedParameters final : public Strategy {
 public:
  ZeroPartitionedParameters(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void adjust(OptimizerOptions& options) const override;
  void before_use(Storage& storage) override;
  void gradient_ready(TensorImpl& leaf) override;
  void after_backward() override;
  void before_step() override;
  void clear_gradients() override;

 private:
  struct Unit {
    std::vector<FlatGroup> groups;
    std::int64_t elements = 0;
    std::int64_t after = -1;  // elements that the forward pass uses after it; -1: not yet known
    bool gathered = false;
  };

  void add_unit(const std::vector<Tensor>& tensors);
  bool soon_again(const Unit& unit) const;

  Session& device_;
  Session& host_;
  ZeroBuffers buffers_;
  bool form_given_;
  bool parameters_on_host_;
  MasterPartitions masters_;
  std::vector<Unit> units_;
  std::unordered_map<const Storage*, std::size_t> unit_of_;
  std::vector<FlatGroup> persistent_;  // too small to be worth partitioning
  std::vector<Tensor> kept_;           // partitions, gradient partitions and the bucket
  std::int64_t total_ = 0;
  std::int64_t seen_ = 0;
  std::size_t current_;
  Tensor prefetched_;
};

}  // namespace memfathom
