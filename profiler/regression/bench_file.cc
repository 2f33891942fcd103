#include "profiler/regression/bench_file.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/document.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/newer_schema.h"

namespace memfathom {
namespace {

constexpr const char* kSchema = "memfathom.bench/1";

using nlohmann::json;

constexpr double kMillisecond = 1e-3;

json row_json(const BenchRow& row, int repetitions) {
  // The first block contains the keys that upstream's reader requires.
  json entry = {{"name", row.name},
                {"run_name", row.name},
                {"run_type", "iteration"},
                {"repetitions", repetitions},
                {"repetition_index", row.repetition},
                {"threads", 1},
                {"iterations", 1},
                {"real_time", row.seconds / kMillisecond},
                {"cpu_time", row.cpu_seconds / kMillisecond},
                {"time_unit", "ms"}};
  if (!row.label.empty()) entry["label"] = row.label;
  if (!row.time_of.empty()) entry["time_of"] = row.time_of;
  if (!row.error.empty()) {
    entry["error_occurred"] = true;
    entry["error_message"] = row.error;
  }
  for (const auto& [name, bytes] : row.counters) entry[name] = bytes.count();
  if (!row.operations.empty()) {
    json& operations = entry["operations"] = json::array();
    for (const BenchOperation& operation : row.operations) {
      operations.push_back({{"component", operation.component},
                            {"operation", operation.operation},
                            {"bytes", operation.bytes.count()}});
    }
  }
  return entry;
}

std::string text_or_empty(const Node& map, std::string_view key) {
  const Node* found = map.find(key);
  return found == nullptr || found->is_null() ? std::string() : found->as_string();
}

double seconds_in(const Node& entry, std::string_view key) {
  const Node* time = entry.find(key);
  if (time == nullptr) return 0;
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 4> kUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  const Node* unit = entry.find("time_unit");
  if (unit == nullptr) return time->as_number() * 1e-9;
  constexpr std::array kNames{kUnits[0].name, kUnits[1].name, kUnits[2].name, kUnits[3].name};
  return time->as_number() * kUnits[unit->as_choice(kNames)].seconds;
}

BenchRow row_from(const Node& entry) {
  BenchRow row;
  const Node* run_name = entry.find("run_name");
  row.name = (run_name != nullptr ? *run_name : entry.at("name")).as_string();
  row.label = text_or_empty(entry, "label");
  row.time_of = text_or_empty(entry, "time_of");
  if (const Node* index = entry.find("repetition_index"))
    row.repetition = static_cast<int>(index->as_int(0, 1'000'000));
  row.seconds = seconds_in(entry, "real_time");
  row.cpu_seconds = seconds_in(entry, "cpu_time");
  if (const Node* failed = entry.find("error_occurred"); failed != nullptr && failed->as_bool()) {
    row.error = text_or_empty(entry, "error_message");
    if (row.error.empty()) row.error = "no reason is given";
  }
  for (const Node& value : entry.entries()) {
    if (value.key().ends_with("_bytes"))
      row.counters[std::string(value.key())] = Bytes{value.as_int(0)};
  }
  if (const Node* operations = entry.find("operations")) {
    for (const Node& operation : operations->items()) {
      row.operations.push_back({operation.at("component").as_string(),
                                operation.at("operation").as_string(),
                                Bytes{operation.at("bytes").as_int(0)}});
    }
  }
  return row;
}

bool is_aggregate(const Node& entry) {
  const Node* type = entry.find("run_type");
  return type != nullptr && type->as_string() == "aggregate";
}

BenchFile file_from(const Node& root, const std::string& name) {
  const Node& context = root.at("context");
  // Upstream's own files have none, and are read as far as they go.
  if (const Node* schema = context.find("schema");
      schema != nullptr && schema->is_string() && is_newer_schema(schema->as_string(), kSchema)) {
    schema->refuse(
        fmt::format("a newer memfathom wrote this file; use that version, or run the suite again "
                    "with this one, which reads \"{}\"",
                    kSchema));
  }
  BenchFile file;
  file.date = text_or_empty(context, "date");
  file.program = text_or_empty(context, "executable");
  file.device = text_or_empty(context, "device");
  file.selection = text_or_empty(context, "selection");
  if (const Node* repetitions = context.find("repetitions"))
    file.repetitions = static_cast<int>(repetitions->as_int(0, 1'000'000));
  try {
    file.environment = environment_from_json(to_json(context));
  } catch (const Error& error) {
    throw Error(ErrorKind::kInput, fmt::format("{}: \"context\": {}", name, error.what()));
  }
  for (const Node& entry : root.at("benchmarks").items()) {
    if (!is_aggregate(entry)) file.rows.push_back(row_from(entry));
  }
  return file;
}

}  // namespace

std::string to_text(const BenchFile& file) {
  json context = to_json(file.environment);
  context["schema"] = kSchema;
  context["date"] = file.date;
  context["executable"] = file.program;
  context["device"] = file.device;
  context["selection"] = file.selection;
  context["repetitions"] = file.repetitions;
  json rows = json::array();
  for (const BenchRow& row : file.rows) rows.push_back(row_json(row, file.repetitions));
  return json{{"context", context}, {"benchmarks", rows}}.dump(1) + '\n';
}

BenchFile bench_file_from(std::string_view text, const std::string& name) {
  return file_from(parse_json(text, name), name);
}

BenchFile read_bench_file(const std::string& path) { return file_from(load_document(path), path); }

}  // namespace memfathom
