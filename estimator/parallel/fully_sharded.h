// FullySharded: PyTorch's FSDP, versions 1 and 2: every block's parameters lie in shards and are
// gathered for their use.
#pragma once

#include <unordered_map>
#include <vector>

#include "estimator/parallel/flat_group.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {

class FullySharded final : public Strategy {
 public:
  FullySharded(Session& device, Session& host, const Job& job);

  std::vector<Tensor> adopt(const std::vector<NamedTensor>& parameters) override;
  void before_use(Storage& storage) override;
  void gradient_ready(TensorImpl& leaf) override;
  void before_forward() override;
  void before_backward() override;
  void after_backward() override;

 private:
  // A block, or the root with everything that is in none.
  struct Unit {
    std::vector<FlatGroup> groups;
    std::vector<Tensor> shards;    // one per group
    std::vector<Tensor> gathered;  // version 2: what all-gathers wrote, until it is copied out
    std::size_t learning = 0;      // leaves that get a gradient
    std::size_t arrived = 0;       // gradients of this backward so far
    bool root = false;
    bool whole = false;  // its parameters have their memory
  };

  Tensor shard_of(const FlatGroup& group);
  void broadcast(const FlatGroup& group, const std::vector<Tensor>& tensors);
  void enter(std::size_t index);
  void gather(Unit& unit);
  void copy_out(Unit& unit);
  void prefetch_before(std::size_t index);
  void release_memory(Unit& unit);
  void reduce(Unit& unit);
  void finish_others(const Unit& entered);
  DType reduce_type(const FlatGroup& group) const;
  void scatter(const FlatGroup& group, const Tensor& joined, Tensor& shard);

  Session& device_;
  Session& host_;
  bool second_version_;
  bool limited_;  // the host waits for the last but one block before it gathers
  bool on_host_;
  std::int64_t count_;
  std::optional<DType> master_;  // of shards that learn; absent: the parameters' own
  std::optional<DType> reduce_precision_;
  std::vector<Unit> units_;
  std::unordered_map<const Storage*, std::size_t> unit_of_;
  std::vector<std::size_t> order_;  // of blocks in this forward pass
  std::size_t current_;
  std::vector<Tensor> last_gathered_;   // version 2, forward: freed when the next is there
  std::vector<Tensor> reduce_buffers_;  // version 2: what the reduce-scatter reads, until the next
};

}  // namespace memfathom
