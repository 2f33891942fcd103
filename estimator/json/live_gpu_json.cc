#include "estimator/json/live_gpu_json.h"

#include <nlohmann/json.hpp>

namespace memfathom {

nlohmann::ordered_json gpu_json(const LiveGpu& gpu) {
  using Json = nlohmann::ordered_json;
  const auto nullable = [](const std::optional<Bytes>& bytes) {
    return bytes ? Json(bytes->count()) : Json(nullptr);
  };
  Json processes = Json::array();
  for (const GpuProcess& process : gpu.processes)
    processes.push_back(
        {{"pid", process.pid}, {"name", process.name}, {"used_bytes", nullable(process.used)}});
  return {{"name", gpu.device},
          {"product", gpu.product},
          {"gpu", gpu.gpu.empty() ? Json(nullptr) : Json(gpu.gpu)},
          {"total_bytes", gpu.total.count()},
          {"used_bytes", (gpu.used - gpu.reserved.value_or(Bytes{})).count()},
          {"reserved_bytes", nullable(gpu.reserved)},
          {"available_bytes", (gpu.total - gpu.used).count()},
          {"processes", std::move(processes)}};
}

}  // namespace memfathom
