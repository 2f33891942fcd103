#include "estimator/json/estimate_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_io.h"
#include "estimator/json/json_object.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

template <typename T, typename F>
Json nullable(const std::optional<T>& value, F convert) {
  return value ? Json(convert(*value)) : Json(nullptr);
}

Json nullable(const std::optional<Bytes>& bytes) {
  return nullable(bytes, [](Bytes b) { return b.count(); });
}

Json nullable(const std::optional<double>& value) {
  return nullable(value, [](double v) { return v; });
}

// To nine digits: mathematical functions of different systems differ in the last bits.
Json probability_json(const std::optional<double>& probability) {
  constexpr double kDigits = 1e9;
  return nullable(probability, [](double p) { return std::round(p * kDigits) / kDigits; });
}

Json totals_json(const Totals& totals) {
  Json json = JsonObject()
                  .add("allocated_peak_bytes", totals.allocated_peak.count())
                  .add("reserved_peak_bytes", totals.reserved_peak.count())
                  .add("device_peak_bytes", totals.device_peak.count())
                  .add("device_low_bytes", totals.device_low.count())
                  .add("device_high_bytes", totals.device_high.count())
                  .add("interval", totals.interval)
                  .add("first_iteration_allocated_peak_bytes", totals.first_allocated_peak.count());
  if (totals.device_high_on_gpu)
    json["device_high_on_gpu_bytes"] = totals.device_high_on_gpu->count();
  if (totals.comfortable_peak) json["comfortable_bytes"] = totals.comfortable_peak->count();
  if (!totals.rank.empty()) json["rank"] = totals.rank;
  if (totals.host_peak) {
    json["host_peak_bytes"] = totals.host_peak->count();
    json["host_node_bytes"] = totals.host_of_node()->count();
    json["ranks_per_node"] = totals.ranks_per_node;
  }
  return json;
}

Json components_json(const std::vector<ComponentLine>& lines) {
  Json list = Json::array();
  for (const ComponentLine& line : lines) {
    Json json = JsonObject()
                    .add("name", to_string(line.component))
                    .add("module", line.module.empty() ? Json(nullptr) : Json(line.module))
                    .add("bytes", line.bytes.count())
                    .add("source", to_string(line.source));
    if (!line.coefficient.empty()) json["coefficient"] = line.coefficient;
    list.push_back(std::move(json));
  }
  return list;
}

Json phases_json(const std::vector<PhaseLine>& lines) {
  Json list = Json::array();
  for (const PhaseLine& line : lines) {
    Json live = Json::object();
    for (std::size_t c = 0; c < kComponentCount; ++c) {
      if (line.live_at_peak[c] != 0)
        live[std::string(to_string(static_cast<Component>(c)))] = line.live_at_peak[c];
    }
    list.push_back(JsonObject()
                       .add("name", line.name)
                       .add("iteration", line.iteration)
                       .add("allocated_peak_bytes", line.allocated_peak.count())
                       .add("reserved_bytes", line.reserved.count())
                       .add("live_at_peak", std::move(live)));
  }
  return list;
}

Json explanations_json(const Estimate& estimate) {
  Json list = Json::array();
  for (const Explanation& line : estimate.explanations) {
    list.push_back(JsonObject()
                       .add("name", line.name)
                       .add("module", line.module.empty() ? Json(nullptr) : Json(line.module))
                       .add("text", line.text));
  }
  return list;
}

Json uncertainty_json(const Estimate& estimate) {
  Json list = Json::array();
  for (const SpreadPart& part : estimate.uncertainty) {
    list.push_back(JsonObject()
                       .add("name", part.name)
                       .add("below_bytes", part.below.count())
                       .add("above_bytes", part.above.count())
                       .add("text", part.text));
  }
  return list;
}

}  // namespace

Json unread_json(const std::vector<UnreadKey>& keys) {
  Json list = Json::array();
  for (const UnreadKey& key : keys) {
    list.push_back(JsonObject()
                       .add("file", key.file)
                       .add("key", key.key)
                       .add("concerns", key.concerns.empty() ? Json(nullptr) : Json(key.concerns)));
    if (!key.value.empty()) list.back()["value"] = key.value;
  }
  return list;
}

Json suggestions_json(const std::vector<Suggestion>& suggestions) {
  Json list = Json::array();
  for (const Suggestion& suggestion : suggestions) {
    list.push_back(JsonObject()
                       .add("change", suggestion.change)
                       .add("name", suggestion.name)
                       .add("costs", suggestion.costs)
                       .add("saves_bytes", suggestion.saves.count())
                       .add("device_peak_bytes", suggestion.device_peak.count())
                       .add("fits", suggestion.fits)
                       .add("patch", Json(to_json(suggestion.patch)))
                       .add("kind", suggestion.kind)
                       .add("time_factor", suggestion.time_factor)
                       .add("time_basis", suggestion.time_basis));
  }
  return list;
}

Json estimate_json(const Estimate& estimate) {
  Json json = JsonObject().add("schema", "memfathom.estimate/1");
  if (!estimate.id.empty()) json["id"] = estimate.id;
  json["totals"] = totals_json(estimate.totals);
  json["components"] = components_json(estimate.components);
  json["phases"] = phases_json(estimate.phases);
  const Verdict& verdict = estimate.verdict;
  json["verdict"] = JsonObject()
                        .add("status", to_string(verdict.status))
                        .add("card", verdict.gpu.empty() ? Json(nullptr) : Json(verdict.gpu))
                        .add("probability_fits", probability_json(verdict.probability_fits))
                        .add("capacity_bytes", nullable(verdict.capacity))
                        .add("available_bytes", nullable(verdict.available))
                        .add("headroom_bytes", nullable(verdict.headroom));
  json["suggestions"] = suggestions_json(estimate.suggestions);
  const CalibrationNote& note = estimate.calibration;
  json["calibration"] =
      JsonObject()
          .add("id", note.id.empty() ? Json(nullptr) : Json(note.id))
          .add("name", note.name.empty() ? Json(nullptr) : Json(note.name))
          .add("status", to_string(note.status))
          .add("created", note.created.empty() ? Json(nullptr) : Json(note.created))
          .add("environment", Json(to_json(note.environment)))
          .add("samples", note.samples)
          .add("held_out_median_error", nullable(note.held_out_median_error));
  json["parameters"] = JsonObject()
                           .add("total", estimate.parameter_count)
                           .add("trainable", estimate.trainable_count);
  json["assumptions"] = estimate.assumptions;
  json["not_modelled"] = estimate.not_modelled;
  json["warnings"] = estimate.warnings;
  json["uncertainty"] = uncertainty_json(estimate);
  if (!estimate.unread.empty()) json["unread"] = unread_json(estimate.unread);
  if (!estimate.explanations.empty()) json["explanation"] = explanations_json(estimate);
  return json;
}

std::string to_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string error_json_line(const std::string& id, const std::string& sentence, ErrorKind kind) {
  const Json json = JsonObject()
                        .add("schema", "memfathom.error/1")
                        .add("id", id.empty() ? Json(nullptr) : Json(id))
                        .add("error", sentence)
                        .add("kind", to_string(kind));
  return to_text(json, kOneLine);
}

}  // namespace memfathom
