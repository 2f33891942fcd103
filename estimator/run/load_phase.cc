#include "estimator/run/load_phase.h"

#include <vector>

namespace memfathom {

void load_shard(Session& session, const Job& job, const BuiltModel& model) {
  if (!job.model.loaded_shard()) return;
  const Bytes shard = *job.model.loaded_shard();
  // The file's tensors are the model's own, one by one, until it is full.
  const ComponentScope scope(session, Component::kTemporaries);
  std::vector<Tensor> tensors;
  Bytes taken;
  for (const NamedTensor& parameter : model.parameters()) {
    const Bytes size = size_of(parameter.tensor.shape(), parameter.tensor.dtype());
    if (taken + size > shard) break;
    taken += size;
    tensors.push_back(session.empty(parameter.tensor.shape(), parameter.tensor.dtype()));
  }
}

}  // namespace memfathom
