#include "kernels/devices/cuda/cudnn/execute.h"

#include <cstdint>
#include <vector>

namespace memfathom::cudnn {

void execute(cudnnHandle_t handle, const ExecutionPlan& plan,
             std::span<const TensorBinding> operands, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const TensorBinding& operand : operands) {
    ids.push_back(operand.id);
    pointers.push_back(operand.data);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(pointers.size()), pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  check(cudnnBackendExecute(handle, plan.descriptor().raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace memfathom::cudnn
