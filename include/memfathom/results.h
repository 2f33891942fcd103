// Results as values: the JSON of memfathom/memfathom.h into the structs of the other headers.
// session.h uses it; include it yourself to read results that were stored (`memfathom estimate
// --format json`).
//
//     #include <memfathom/results.h>
//     #include <fstream>
//     #include <iostream>
//
//     int main() {
//       std::ifstream file("estimate.json");
//       const memfathom::Estimate e =
//       memfathom::results::read_estimate(nlohmann::json::parse(file)); std::cout <<
//       to_string(e.totals.device_peak) << '\n';
//     }
//
// A missing key leaves the struct's default, so that results of other versions stay readable.
#pragma once

#include <memfathom/accuracy.h>
#include <memfathom/compare.h>
#include <memfathom/error.h>
#include <memfathom/estimate.h>
#include <memfathom/lists.h>
#include <memfathom/recommend.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {
inline namespace v0 {
namespace results {

using Json = nlohmann::json;

inline const Json* member(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}
inline std::string text(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}
template <typename T>
std::optional<T> number(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr && (found->is_number() || found->is_boolean())
             ? std::optional<T>(found->get<T>())
             : std::nullopt;
}
inline std::optional<Bytes> size(const Json& json, const char* key) {
  const std::optional<std::int64_t> count = number<std::int64_t>(json, key);
  return count ? std::optional<Bytes>(Bytes(*count)) : std::nullopt;
}
inline Bytes bytes(const Json& json, const char* key) { return size(json, key).value_or(Bytes()); }
inline std::vector<std::string> texts(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr ? found->get<std::vector<std::string>>() : std::vector<std::string>();
}
template <typename F>
auto list(const Json& json, const char* key, F read) {
  std::vector<decltype(read(json))> values;
  if (const Json* found = member(json, key)) {
    for (const Json& item : *found) values.push_back(read(item));
  }
  return values;
}
inline Json object(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr ? *found : Json::object();
}

inline ErrorKind error_kind(std::string_view name) {
  if (name == "usage" || name == "input") return ErrorKind::kInput;
  return name == "internal" ? ErrorKind::kInternal : ErrorKind::kEnvironment;
}
inline VerdictStatus verdict_status(std::string_view name) {
  if (name == "fits") return VerdictStatus::kFits;
  if (name == "tight") return VerdictStatus::kTight;
  if (name == "undecided") return VerdictStatus::kUndecided;
  return name == "does_not_fit" ? VerdictStatus::kDoesNotFit : VerdictStatus::kUnknown;
}
inline CalibrationStatus calibration_status(std::string_view name) {
  if (name == "calibrated") return CalibrationStatus::kCalibrated;
  if (name == "stale") return CalibrationStatus::kStale;
  return name == "published" ? CalibrationStatus::kPublished : CalibrationStatus::kNone;
}

inline Suggestion read_suggestion(const Json& json) {
  return {text(json, "name"),
          text(json, "change"),
          text(json, "costs"),
          bytes(json, "saves_bytes"),
          bytes(json, "device_peak_bytes"),
          number<bool>(json, "fits").value_or(false),
          object(json, "patch"),
          text(json, "kind"),
          number<double>(json, "time_factor").value_or(1),
          text(json, "time_basis")};
}

inline CalibrationNote read_calibration(const Json& json) {
  CalibrationNote note;
  note.status = calibration_status(text(json, "status"));
  note.id = text(json, "id");
  note.name = text(json, "name");
  note.created = text(json, "created");
  note.samples = number<int>(json, "samples").value_or(0);
  note.held_out_median_error = number<double>(json, "held_out_median_error");
  const Json environment = object(json, "environment");
  note.environment = {text(environment, "gpu"),
                      text(environment, "architecture"),
                      bytes(environment, "memory_total_bytes"),
                      text(environment, "driver"),
                      text(environment, "cuda"),
                      text(environment, "cudnn"),
                      text(environment, "cublas"),
                      text(environment, "framework"),
                      text(environment, "framework_version"),
                      environment};
  return note;
}

inline Phase read_phase(const Json& json) {
  Phase phase{text(json, "name"),
              number<int>(json, "iteration").value_or(0),
              bytes(json, "allocated_peak_bytes"),
              bytes(json, "reserved_bytes"),
              {}};
  const Json live = object(json, "live_at_peak");
  for (const auto& [name, count] : live.items())
    phase.live_at_peak[name] = Bytes(count.get<std::int64_t>());
  return phase;
}

inline Estimate read_estimate(const Json& json) {
  Estimate estimate;
  estimate.json = json;
  estimate.id = text(json, "id");
  estimate.job = text(json, "job");
  const Json totals = object(json, "totals");
  estimate.totals = {
      bytes(totals, "allocated_peak_bytes"), bytes(totals, "reserved_peak_bytes"),
      bytes(totals, "device_peak_bytes"),    bytes(totals, "device_low_bytes"),
      bytes(totals, "device_high_bytes"),    number<double>(totals, "interval").value_or(0.9),
      size(totals, "host_peak_bytes"),       size(totals, "device_high_on_gpu_bytes")};
  estimate.components = list(json, "components", [](const Json& one) {
    return Component{text(one, "name"), text(one, "module"), bytes(one, "bytes"),
                     text(one, "source")};
  });
  estimate.phases = list(json, "phases", read_phase);
  const Json verdict = object(json, "verdict");
  estimate.verdict = {verdict_status(text(verdict, "status")),
                      text(verdict, "card"),
                      number<double>(verdict, "probability_fits"),
                      size(verdict, "capacity_bytes"),
                      size(verdict, "available_bytes"),
                      size(verdict, "headroom_bytes")};
  estimate.suggestions = list(json, "suggestions", read_suggestion);
  estimate.calibration = read_calibration(object(json, "calibration"));
  const Json parameters = object(json, "parameters");
  estimate.parameters = number<std::int64_t>(parameters, "total").value_or(0);
  estimate.trainable_parameters = number<std::int64_t>(parameters, "trainable").value_or(0);
  estimate.assumptions = texts(json, "assumptions");
  estimate.not_modelled = texts(json, "not_modelled");
  estimate.warnings = texts(json, "warnings");
  estimate.unread = list(json, "unread", [](const Json& key) {
    return UnreadKey{text(key, "file"), text(key, "key"), text(key, "concerns")};
  });
  estimate.explanations = list(json, "explanation", [](const Json& one) {
    return Explanation{text(one, "name"), text(one, "module"), text(one, "text")};
  });
  return estimate;
}

inline Recommendation read_recommendation(const Json& json) {
  Recommendation advice;
  advice.json = json;
  advice.fits = number<bool>(json, "fits");
  advice.device_peak = bytes(json, "device_peak_bytes");
  advice.capacity = size(json, "capacity_bytes");
  advice.available = size(json, "available_bytes");
  advice.suggestions = list(json, "suggestions", read_suggestion);
  advice.largest = list(json, "largest", [](const Json& one) {
    return LargestExtent{text(one, "name"), number<std::int64_t>(one, "now").value_or(0),
                         number<std::int64_t>(one, "largest"),
                         number<bool>(one, "at_least").value_or(false),
                         bytes(one, "device_peak_bytes")};
  });
  advice.configurations = list(json, "configurations", [](const Json& one) {
    return Configuration{text(one, "name"),
                         text(one, "aim"),
                         texts(one, "changes"),
                         bytes(one, "device_peak_bytes"),
                         size(one, "host_peak_bytes"),
                         number<std::int64_t>(one, "effective_batch").value_or(0),
                         object(one, "patch"),
                         text(one, "yaml"),
                         number<bool>(one, "trains_the_same").value_or(true),
                         number<double>(one, "time_factor").value_or(1),
                         text(one, "time_basis")};
  });
  advice.frontier = list(json, "frontier", [](const Json& one) {
    return FrontierPoint{texts(one, "names"),
                         texts(one, "changes"),
                         bytes(one, "device_peak_bytes"),
                         size(one, "host_node_bytes"),
                         number<double>(one, "time_factor").value_or(1),
                         text(one, "time_basis"),
                         number<bool>(one, "trains_the_same").value_or(true),
                         number<bool>(one, "fits").value_or(false),
                         object(one, "patch")};
  });
  advice.time_rates = text(json, "time_rates");
  advice.host_memory = size(json, "host_memory_bytes");
  advice.assumptions = texts(json, "assumptions");
  advice.not_modelled = texts(json, "not_modelled");
  advice.warnings = texts(json, "warnings");
  return advice;
}

inline Comparison read_comparison(const Json& json) {
  return {text(json, "baseline"),
          list(json, "strategies",
               [](const Json& one) {
                 return Strategy{text(one, "name"),
                                 bytes(one, "device_peak_bytes"),
                                 bytes(one, "allocated_peak_bytes"),
                                 number<double>(one, "saved_fraction").value_or(0),
                                 verdict_status(text(one, "verdict")),
                                 one};
               }),
          json};
}

inline std::vector<Model> read_models(const Json& json) {
  return list(json, "models", [](const Json& one) {
    return Model{text(one, "name"), text(one, "description"),
                 number<std::int64_t>(one, "parameters").value_or(0)};
  });
}

inline std::vector<Gpu> read_gpus(const Json& json) {
  return list(json, "gpus", [](const Json& one) {
    return Gpu{text(one, "name"),           text(one, "product"),
               text(one, "vendor"),         text(one, "architecture"),
               bytes(one, "memory_bytes"),  size(one, "device_peak_bytes"),
               size(one, "headroom_bytes"), verdict_status(text(one, "verdict"))};
  });
}

inline std::vector<AccuracyRow> read_accuracy(const Json& json) {
  return list(json, "data", [](const Json& one) {
    return AccuracyRow{text(one, "data"),
                       number<int>(one, "rows").value_or(0),
                       number<int>(one, "answered").value_or(0),
                       number<double>(one, "median_error"),
                       number<double>(one, "p90_error"),
                       number<double>(one, "under_by_10_percent"),
                       number<double>(one, "coverage"),
                       number<double>(one, "verdicts_right")};
  });
}

}  // namespace results
}  // namespace v0
}  // namespace memfathom
