#include "core/json_io.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const char* record, const char* key, const json& value,
                         const char* expected) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: \"{}\" is {}; it must be {}", record, key,
                          value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60),
                          expected));
}

// Reads the keys of a JSON object into a record's fields.
class Reader {
 public:
  Reader(const json& object, const char* record) : object_(object), record_(record) {
    if (!object.is_object()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: expected a JSON object but found {}", record,
                                                 object.type_name()));
    }
  }

  void read(const char* key, std::string& field) const {
    if (const json* value = find(key)) {
      if (!value->is_string()) refuse(record_, key, *value, "a string");
      field = value->get<std::string>();
    }
  }
  void read(const char* key, bool& field) const {
    if (const json* value = find(key)) {
      if (!value->is_boolean()) refuse(record_, key, *value, "true or false");
      field = value->get<bool>();
    }
  }
  void read(const char* key, double& field) const {
    if (const json* value = find(key)) {
      if (!value->is_number()) refuse(record_, key, *value, "a number");
      field = value->get<double>();
    }
  }
  void read(const char* key, std::int64_t& field) const {
    if (const json* value = find(key)) {
      const bool too_large =
          value->is_number_unsigned() &&
          value->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      if (!value->is_number_integer() || too_large)
        refuse(record_, key, *value, "a whole number of 64 bits");
      field = value->get<std::int64_t>();
    }
  }
  void read(const char* key, int& field) const {
    std::int64_t wide = field;
    read(key, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
      refuse(record_, key, json(wide), "a whole number of 32 bits");
    }
    field = static_cast<int>(wide);
  }
  void read(const char* key, Bytes& field) const {
    std::int64_t count = field.count();
    read(key, count);
    field = Bytes{count};
  }
  template <typename T>
  void read(const char* key, std::optional<T>& field) const {
    if (find(key) == nullptr) return;
    T value{};
    read(key, value);
    field = value;
  }
  // `parse` is no pointer argument: clang for WebAssembly gives a function whose address is taken a
  // wrong signature while a type of it is incomplete.
  template <auto parse, typename T>
  void read_name(const char* key, T& field, const char* expected) const {
    if (const json* value = find(key)) {
      const std::optional<T> parsed =
          value->is_string() ? parse(value->get_ref<const std::string&>()) : std::nullopt;
      if (!parsed) refuse(record_, key, *value, expected);
      field = *parsed;
    }
  }
  void read(const char* key, std::vector<double>& field) const {
    for (const json& item : list(key)) {
      if (!item.is_number()) refuse(record_, key, item, "a list of numbers");
      field.push_back(item.get<double>());
    }
  }
  // A job is canonical JSON text; an object is accepted too and made canonical.
  void read_job(const char* key, std::string& field) const {
    const json* value = find(key);
    if (value != nullptr && value->is_object()) {
      field = value->dump();
    } else {
      read(key, field);
    }
  }

  const json& list(const char* key) const {
    static const json kEmpty = json::array();
    const json* value = find(key);
    if (value == nullptr) return kEmpty;
    if (!value->is_array()) refuse(record_, key, *value, "a list");
    return *value;
  }
  // The value of a key; null counts as absent.
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  const json& object_;
  const char* record_;
};

template <typename T>
json nullable(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json nullable(const std::optional<Bytes>& value) {
  return value ? json(value->count()) : json(nullptr);
}

constexpr const char* kSourceNames = "one of exact, measured, fitted, published, default";

}  // namespace

json to_json(const Environment& environment) {
  json object{{"gpu", environment.gpu},
              {"architecture", environment.architecture},
              {"memory_total_bytes", environment.memory_total.count()},
              {"ecc", environment.ecc},
              {"mig", environment.mig},
              {"driver", environment.driver},
              {"cuda", environment.cuda},
              {"cublas", environment.cublas},
              {"cudnn", environment.cudnn},
              {"cufft", environment.cufft},
              {"framework", environment.framework},
              {"framework_version", environment.framework_version},
              {"os", environment.os}};
  if (!environment.module_loading.empty()) object["module_loading"] = environment.module_loading;
  return object;
}

Environment environment_from_json(const json& object) {
  const Reader reader(object, "environment");
  Environment environment;
  reader.read("gpu", environment.gpu);
  reader.read("architecture", environment.architecture);
  reader.read("memory_total_bytes", environment.memory_total);
  reader.read("ecc", environment.ecc);
  reader.read("mig", environment.mig);
  reader.read("driver", environment.driver);
  reader.read("cuda", environment.cuda);
  reader.read("cublas", environment.cublas);
  reader.read("cudnn", environment.cudnn);
  reader.read("cufft", environment.cufft);
  reader.read("module_loading", environment.module_loading);
  reader.read("framework", environment.framework);
  reader.read("framework_version", environment.framework_version);
  reader.read("os", environment.os);
  return environment;
}

json to_json(const Sample& sample) {
  json stages = json::array();
  for (const StageReading& reading : sample.stages) {
    stages.push_back(
        {{"stage", reading.stage}, {"device_used_bytes", reading.device_used.count()}});
  }
  json workspaces = json::array();
  for (const WorkspaceRequest& request : sample.workspaces) {
    workspaces.push_back({{"library", to_string(request.library)},
                          {"operation", request.operation},
                          {"shape", request.shape},
                          {"bytes", request.bytes.count()}});
  }
  return {{"workload", sample.workload},
          {"family", sample.family},
          {"job", sample.job},
          {"validation", sample.validation},
          {"status", to_string(sample.status)},
          {"status_note", sample.status_note},
          {"allocated_peak_bytes", nullable(sample.allocated_peak)},
          {"reserved_peak_bytes", nullable(sample.reserved_peak)},
          {"device_peak_bytes", nullable(sample.device_peak)},
          {"device_metric", sample.device_metric},
          {"seconds_per_step", nullable(sample.seconds_per_step)},
          {"repeats", sample.repeats},
          {"spread", nullable(sample.spread)},
          {"stop_criterion", sample.stop_criterion},
          {"stages", std::move(stages)},
          {"workspaces", std::move(workspaces)}};
}

Sample sample_from_json(const json& object) {
  const Reader reader(object, "sample");
  Sample sample;
  reader.read("workload", sample.workload);
  reader.read("family", sample.family);
  reader.read_job("job", sample.job);
  reader.read("validation", sample.validation);
  reader.read_name<parse_sample_status>(
      "status", sample.status,
      "one of ok, crashed, timed_out, out_of_memory, killed, disturbed, failed");
  reader.read("status_note", sample.status_note);
  reader.read("allocated_peak_bytes", sample.allocated_peak);
  reader.read("reserved_peak_bytes", sample.reserved_peak);
  reader.read("device_peak_bytes", sample.device_peak);
  reader.read("device_metric", sample.device_metric);
  reader.read("seconds_per_step", sample.seconds_per_step);
  reader.read("repeats", sample.repeats);
  reader.read("spread", sample.spread);
  reader.read("stop_criterion", sample.stop_criterion);
  for (const json& item : reader.list("stages")) {
    const Reader stage(item, "sample stage");
    StageReading& reading = sample.stages.emplace_back();
    stage.read("stage", reading.stage);
    stage.read("device_used_bytes", reading.device_used);
  }
  for (const json& item : reader.list("workspaces")) {
    const Reader workspace(item, "sample workspace");
    WorkspaceRequest& request = sample.workspaces.emplace_back();
    workspace.read_name<parse_library>("library", request.library,
                                       "one of cublas, cublaslt, cudnn, cufft, onednn, fftw");
    workspace.read("operation", request.operation);
    workspace.read("shape", request.shape);
    workspace.read("bytes", request.bytes);
  }
  return sample;
}

json to_json(const Observation& observation) {
  return {{"job", observation.job},
          {"metric", to_string(observation.metric)},
          {"bytes", nullable(observation.bytes)},
          {"fits", nullable(observation.fits)},
          {"gpu", observation.gpu},
          {"driver", observation.driver},
          {"cuda", observation.cuda},
          {"cudnn", observation.cudnn},
          {"framework", observation.framework},
          {"framework_version", observation.framework_version},
          {"source", observation.source},
          {"group", observation.group},
          {"note", observation.note}};
}

Observation observation_from_json(const json& object) {
  const Reader reader(object, "observation");
  Observation observation;
  reader.read_job("job", observation.job);
  reader.read_name<parse_metric>("metric", observation.metric,
                                 "one of allocated, reserved, device");
  reader.read("bytes", observation.bytes);
  reader.read("fits", observation.fits);
  reader.read("gpu", observation.gpu);
  reader.read("driver", observation.driver);
  reader.read("cuda", observation.cuda);
  reader.read("cudnn", observation.cudnn);
  reader.read("framework", observation.framework);
  reader.read("framework_version", observation.framework_version);
  reader.read("source", observation.source);
  reader.read("group", observation.group);
  reader.read("note", observation.note);
  return observation;
}

json to_json(const Calibration& calibration) {
  json coefficients = json::array();
  for (const Coefficient& coefficient : calibration.coefficients) {
    coefficients.push_back({{"name", coefficient.name},
                            {"value", coefficient.value},
                            {"standard_error", coefficient.standard_error},
                            {"unit", coefficient.unit},
                            {"source", to_string(coefficient.source)},
                            {"prior_only", coefficient.prior_only},
                            {"samples", coefficient.samples}});
  }
  json ratios = json::array();
  for (const RatioGroup& group : calibration.ratios) {
    ratios.push_back({{"group", group.group}, {"ratios", group.ratios}});
  }
  const Quality& quality = calibration.quality;
  return {{"id", calibration.id},
          {"name", calibration.name},
          {"environment", to_json(calibration.environment)},
          {"created", calibration.created},
          {"source", to_string(calibration.source)},
          {"provenance", calibration.provenance},
          {"usable", calibration.usable},
          {"refusal", calibration.refusal},
          {"samples", calibration.samples},
          {"coefficients", std::move(coefficients)},
          {"covariance", calibration.covariance},
          {"ratios", std::move(ratios)},
          {"quality",
           {{"held_out_median_error", nullable(quality.held_out_median_error)},
            {"held_out_p90_error", nullable(quality.held_out_p90_error)},
            {"under_by_10_percent", nullable(quality.under_by_10_percent)},
            {"coverage_90", nullable(quality.coverage_90)},
            {"validation_rows", quality.validation_rows}}},
          {"supersedes", calibration.supersedes}};
}

Calibration calibration_from_json(const json& object) {
  const Reader reader(object, "calibration");
  Calibration calibration;
  reader.read("id", calibration.id);
  reader.read("name", calibration.name);
  if (const json* environment = reader.find("environment")) {
    calibration.environment = environment_from_json(*environment);
  }
  reader.read("created", calibration.created);
  reader.read_name<parse_source>("source", calibration.source, kSourceNames);
  reader.read("provenance", calibration.provenance);
  reader.read("usable", calibration.usable);
  reader.read("refusal", calibration.refusal);
  reader.read("samples", calibration.samples);
  for (const json& item : reader.list("coefficients")) {
    const Reader fields(item, "calibration coefficient");
    Coefficient& coefficient = calibration.coefficients.emplace_back();
    fields.read("name", coefficient.name);
    fields.read("value", coefficient.value);
    fields.read("standard_error", coefficient.standard_error);
    fields.read("unit", coefficient.unit);
    fields.read_name<parse_source>("source", coefficient.source, kSourceNames);
    fields.read("prior_only", coefficient.prior_only);
    fields.read("samples", coefficient.samples);
  }
  reader.read("covariance", calibration.covariance);
  for (const json& item : reader.list("ratios")) {
    const Reader fields(item, "calibration ratios");
    RatioGroup& group = calibration.ratios.emplace_back();
    fields.read("group", group.group);
    fields.read("ratios", group.ratios);
  }
  if (const json* quality = reader.find("quality")) {
    const Reader fields(*quality, "calibration quality");
    fields.read("held_out_median_error", calibration.quality.held_out_median_error);
    fields.read("held_out_p90_error", calibration.quality.held_out_p90_error);
    fields.read("under_by_10_percent", calibration.quality.under_by_10_percent);
    fields.read("coverage_90", calibration.quality.coverage_90);
    fields.read("validation_rows", calibration.quality.validation_rows);
  }
  reader.read("supersedes", calibration.supersedes);
  return calibration;
}

}  // namespace memfathom
