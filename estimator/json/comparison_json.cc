#include "estimator/json/comparison_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

Json optional_bytes(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->count()) : Json(nullptr);
}

Json to_json(const StrategyComparison& comparison, const ComparedStrategy& row) {
  const Totals& totals = row.estimate.totals;
  Json json{{"name", row.name},
            {"device_peak_bytes", totals.device_peak.count()},
            {"allocated_peak_bytes", totals.allocated_peak.count()},
            {"saved_fraction", row.saved},
            {"trainable_parameters", row.estimate.trainable_count},
            {"verdict", to_string(row.estimate.verdict.status)}};
  for (std::size_t i = 0; i < row.grid.size(); ++i)
    json["grid"][comparison.columns[i]] = row.grid[i];
  if (row.estimate.verdict.headroom)
    json["headroom_bytes"] = row.estimate.verdict.headroom->count();
  if (totals.host_peak) {
    json["host_peak_bytes"] = totals.host_peak->count();
    json["host_node_bytes"] = totals.host_of_node()->count();
  }
  for (const ComparedTarget& target : row.targets) {
    json["targets"].push_back({{"name", target.name},
                               {"device_peak_bytes", target.device_peak.count()},
                               {"verdict", to_string(target.verdict.status)},
                               {"available_bytes", optional_bytes(target.verdict.available)},
                               {"headroom_bytes", optional_bytes(target.verdict.headroom)}});
  }
  return json;
}

}  // namespace

Json comparison_json(const StrategyComparison& comparison) {
  Json list = Json::array();
  for (const ComparedStrategy& row : comparison.rows) list.push_back(to_json(comparison, row));
  return {{"schema", "memfathom.compare/1"},
          {"baseline", comparison.baseline},
          {"strategies", std::move(list)}};
}

}  // namespace memfathom
