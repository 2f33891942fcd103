#include "estimator/json/lists_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const GpuFit& gpu) {
  Json json{{"name", gpu.gpu.name},
            {"memory_bytes", gpu.gpu.memory().count()},
            {"architecture", gpu.gpu.architecture},
            {"vendor", gpu.gpu.vendor},
            {"product", gpu.gpu.product},
            {"kind", gpu.gpu.kind},
            {"memory_as_shown_by_driver", gpu.gpu.as_shown}};
  if (gpu.estimate) {
    json["device_peak_bytes"] = gpu.estimate->totals.device_peak.count();
    json["headroom_bytes"] = gpu.estimate->verdict.headroom->count();
    json["verdict"] = to_string(gpu.estimate->verdict.status);
  }
  return json;
}

}  // namespace

Json models_json(const std::vector<CataloguedModel>& models) {
  Json list = Json::array();
  for (const CataloguedModel& model : models) {
    list.push_back({{"name", model.name},
                    {"parameters", model.parameters},
                    {"description", model.description}});
  }
  return {{"models", std::move(list)}};
}

Json gpus_json(const std::vector<GpuFit>& gpus) {
  Json list = Json::array();
  for (const GpuFit& gpu : gpus) list.push_back(to_json(gpu));
  return {{"gpus", std::move(list)}};
}

}  // namespace memfathom
