#include "estimator/json/recommendation_json.h"

#include <nlohmann/json.hpp>

#include "core/yaml_text.h"
#include "estimator/job/describe.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/live_gpu_json.h"
#include "estimator/readers/write_back.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

void add_source_format(const Patch& patch, const JobInput& input, Json& json) {
  if (!input.has_foreign_files()) return;
  const WrittenBack written = write_back(input.files.files, patch, input.job.parallel.num_gpus);
  json["file_patches"] = Json::array();
  for (const ChangedFile& file : written.files) {
    json["file_patches"].push_back({{"file", file.file},
                                    {"format", to_string(file.format)},
                                    {"patch", Json(to_json(file.patch))}});
  }
  json["by_hand"] = Json::array();
  for (const KeyChange& change : written.left_over)
    json["by_hand"].push_back(manual_setting(change));
}

Json to_json(const LargestExtent& extent) {
  Json json{{"name", extent.name},
            {"now", extent.now},
            {"largest", extent.largest ? Json(*extent.largest) : Json(nullptr)}};
  if (extent.largest) {
    json["at_least"] = extent.at_least;
    json["device_peak_bytes"] = extent.device_peak.count();
    json["patch"] = Json(to_json(extent.patch));
  }
  return json;
}

Json to_json(const FrontierPoint& point) {
  Json json{{"names", point.names},
            {"changes", point.changes},
            {"device_peak_bytes", point.device_peak.count()},
            {"time_factor", point.time_factor},
            {"time_basis", point.time_basis},
            {"trains_the_same", point.trains_the_same},
            {"fits", point.fits},
            {"patch", Json(memfathom::to_json(point.patch))}};
  if (point.host_of_node) json["host_node_bytes"] = point.host_of_node->count();
  return json;
}

}  // namespace

Json configuration_json(const Configuration& configuration, const JobInput& input) {
  Json json{{"name", configuration.name},
            {"aim", configuration.aim},
            {"changes", configuration.changes},
            {"device_peak_bytes", configuration.device_peak.count()},
            {"used_fraction", configuration.used_fraction},
            {"effective_batch", configuration.effective_batch},
            {"trains_the_same", configuration.trains_the_same},
            {"time_factor", configuration.time_factor},
            {"time_basis", configuration.time_basis},
            {"patch", Json(to_json(configuration.patch))},
            {"yaml", to_yaml(configuration.patch)}};
  if (configuration.host_peak) {
    json["host_peak_bytes"] = configuration.host_peak->count();
    json["host_node_bytes"] = configuration.host_of_node->count();
  }
  add_source_format(patch_of(configuration.patch), input, json);
  return json;
}

Json recommendation_json(const Recommendation& recommendation,
                         const std::vector<PreflightItem>& list, const LiveGpu* gpu,
                         const JobInput& input) {
  const Verdict& verdict = recommendation.base.verdict;
  Json json{{"schema", "memfathom.recommend/1"},
            {"job", describe(input.document, input.job)},
            {"fits", recommendation.available && verdict.status != VerdictStatus::kUndecided
                         ? Json(recommendation.fits)
                         : Json(nullptr)},
            {"device_peak_bytes", recommendation.base.totals.device_peak.count()},
            {"capacity_bytes", verdict.capacity ? Json(verdict.capacity->count()) : Json(nullptr)},
            {"available_bytes",
             recommendation.available ? Json(recommendation.available->count()) : Json(nullptr)},
            {"calibration", to_string(recommendation.base.calibration.status)}};
  if (gpu != nullptr) json["device"] = gpu_json(*gpu);
  json["suggestions"] = suggestions_json(recommendation.suggestions);
  for (std::size_t i = 0; i < recommendation.suggestions.size(); ++i) {
    add_source_format(patch_of(recommendation.suggestions[i].patch), input, json["suggestions"][i]);
    if (input.is_open()) json["suggestions"][i]["fits"] = nullptr;
  }
  json["largest"] = Json::array();
  for (const LargestExtent& extent : recommendation.largest)
    json["largest"].push_back(to_json(extent));
  json["configurations"] = Json::array();
  for (const Configuration& configuration : recommendation.configurations)
    json["configurations"].push_back(configuration_json(configuration, input));
  if (!recommendation.frontier.empty()) {
    json["frontier"] = Json::array();
    for (const FrontierPoint& point : recommendation.frontier) {
      json["frontier"].push_back(to_json(point));
      if (input.is_open()) json["frontier"].back()["fits"] = nullptr;
    }
  }
  json["time_rates"] = recommendation.speed;
  if (recommendation.host_memory) json["host_memory_bytes"] = recommendation.host_memory->count();
  json["checklist"] = Json::array();
  for (const PreflightItem& item : list)
    json["checklist"].push_back({{"name", item.name}, {"done", item.done}, {"text", item.text}});
  json["assumptions"] = recommendation.base.assumptions;
  json["not_modelled"] = recommendation.base.not_modelled;
  json["warnings"] = recommendation.base.warnings;
  if (!recommendation.base.unread.empty()) json["unread"] = unread_json(recommendation.base.unread);
  return json;
}

}  // namespace memfathom
