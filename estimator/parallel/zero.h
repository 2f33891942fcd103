// Zero: DeepSpeed's ZeRO: 16-bit parameters, fp32 copies and optimizer states in partitions,
// gradients through its buckets.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "estimator/parallel/flat_group.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {

// The fp32 partition that a rank updates, and how its gradient gets there; the same in all stages.
class MasterPartitions {
 public:
  MasterPartitions(Session& device, Session& host, const Job& job);

  // `elements` of the rank's own; the group says what they belong to.
  void add(const FlatGroup& group, std::int64_t elements);
  const std::vector<Tensor>& tensors() const { return masters_; }
  // step(): the partition's gradients are joined, then widened to fp32; on the host if the
  // optimizer is there.
  void widen_gradients();
  void clear_gradients();
  bool on_host() const { return on_host_; }
  std::int64_t count() const { return count_; }

 private:
  struct Origin {
    DType dtype;
    ModuleIndex module;
  };

  Session& device_;
  Session& host_;
  bool on_host_;
  std::int64_t count_;
  std::int64_t at_once_ =
      std::numeric_limits<std::int64_t>::max();  // elements whose gradients are widened together
  std::vector<Tensor> masters_;
  std::vector<Origin> origins_;
};

// Stages 1 and 2: parameters stay whole.
class ZeroPartitionedStates final : public Strategy {
 public:
  ZeroPartitionedStates(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void adjust(OptimizerOptions& options) const override;
  void gradient_ready(TensorImpl& leaf) override;
  void after_backward() override;
  void before_step() override;
  void clear_gradients() override;

 private:
  const FlatGroup& group_of(const TensorImpl& leaf) const;
  // The gradient's part in the last rank's partition, which fills first: the heaviest rank's.
  std::int64_t own_elements(const TensorImpl& leaf) const;
  bool at_boundary() const { return passes_ + 1 >= passes_per_step_; }
  void add_to_bucket(TensorImpl& leaf);
  void reduce_bucket();
  void keep_own_part(TensorImpl& leaf);

  Session& device_;
  ZeroBuffers buffers_;
  int stage_;
  bool overlaps_;
  std::optional<OptimizerForm> form_;  // the job's own
  std::int64_t passes_per_step_;       // micro-batches
  std::int64_t passes_ = 0;            // of this step, over already
  MasterPartitions masters_;
  std::vector<FlatGroup> groups_;
  std::vector<Tensor> kept_;     // on the device for good
  std::vector<Tensor> buckets_;  // of this backward
  std::vector<TensorImpl*> in_bucket_;
  std::int64_t filled_ = 0;
  Tensor own_;  // gradients of all parameters that reach into the partition, of this backward
  Tensor accumulated_;  // the same of the step's first backward
};

// Stage 3: parameters are partitioned too, and fetched one by one, with those that follow.
class ZeroPartitionedParameters final : public Strategy {
 public:
  ZeroPartitionedParameters(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void adjust(OptimizerOptions& options) const override;
  void before_use(Storage& storage) override;
  void gradient_ready(TensorImpl& leaf) override;
  void after_backward() override;
  void before_step() override;
  void after_step() override;
  void clear_gradients() override;

 private:
  // One all-gather under way: what it writes to, and the parameters it brings.
  struct Gather {
    Tensor written;
    std::vector<std::size_t> members;
    bool complete = false;
  };
  struct Parameter {
    FlatGroup group;
    std::shared_ptr<Gather> under_way;
    bool available = false;
    std::int64_t wanted_until = -1;  // the last use that a prefetch has looked at
    std::vector<std::size_t> uses;   // places in the order of use, once that is known

    std::int64_t elements() const { return group.elements(); }
    bool absent() const { return !available && !under_way; }
  };

  void add_partition(const FlatGroup& group);
  void use(std::size_t index);
  void gather(const std::vector<std::size_t>& members);
  void await(Parameter& parameter);
  void prefetch();
  bool is_reused_soon(std::size_t index) const;
  void learn_order();
  void release(std::size_t index);
  void reduce_bucket();

  Session& device_;
  Session& host_;
  ZeroBuffers buffers_;
  std::optional<OptimizerForm> form_;  // the job's own
  bool parameters_on_host_;
  MasterPartitions masters_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const Storage*, std::size_t> index_of_;
  std::vector<FlatGroup> persistent_;  // too small to be worth partitioning
  std::vector<Tensor> kept_;           // partitions, gradient partitions and the bucket

  // The order of use that the first pass showed; later ones fetch ahead by it.
  std::vector<std::size_t> order_;
  bool order_known_ = false;
  std::vector<std::int64_t> used_before_;  // elements, by place in the order
  std::int64_t position_ = 0;              // uses in this pass so far
  std::size_t queued_ = 0;                 // the first use that no prefetch has looked at
  std::int64_t live_ = 0;                  // elements gathered or on their way
  std::size_t current_;

  std::vector<TensorImpl*> in_bucket_;
  std::int64_t filled_ = 0;
};

}  // namespace memfathom
