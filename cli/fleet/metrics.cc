#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/database.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/node_stack.h"
#include "cli/fleet/submission.h"
#include "cli/option_parser.h"
#include "cli/status/ages.h"
#include "cli/status/openmetrics.h"
#include "core/document.h"
#include "core/error.h"
#include "core/json_value.h"
#include "core/read_line.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;

std::string text_at(const json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string type_of(const NodeStatus& status) {
  return status.gpus.type.empty() ? "gpu" : status.gpus.type;
}

void add_nodes(const std::vector<NodeStatus>& statuses, OpenMetrics& metrics) {
  metrics.family("memfathom_fleet_node_gpus", "GPUs of a node, by type and Slurm's state.");
  for (const NodeStatus& status : statuses) {
    metrics.sample(
        {{"node", status.node.name}, {"type", type_of(status)}, {"state", status.node.state}},
        status.gpus.count);
  }
  metrics.family("memfathom_fleet_node_calibrated",
                 "1 if the fleet's database has a calibration of the node's GPU type.");
  for (const NodeStatus& status : statuses) {
    metrics.sample({{"node", status.node.name}, {"type", type_of(status)}},
                   status.calibration ? 1 : 0);
  }
  metrics.family("memfathom_fleet_calibration_stale",
                 "1 if the node's driver or libraries differ from those of its type's calibration; "
                 "absent if no job has seen the node.");
  for (const NodeStatus& status : statuses) {
    if (!status.calibration || !status.seen) continue;
    metrics.sample({{"node", status.node.name}, {"type", type_of(status)}},
                   status.state == CalibrationState::kStale ? 1 : 0);
  }
  metrics.family("memfathom_fleet_node_seen_timestamp_seconds",
                 "When a job last looked at the versions of a node.");
  for (const NodeStatus& status : statuses) {
    if (!status.seen) continue;
    if (const auto seen = seconds_of(status.seen->seen))
      metrics.sample({{"node", status.node.name}, {"type", type_of(status)}}, *seen);
  }
}

void add_calibrations(const std::vector<FleetCalibration>& calibrations, OpenMetrics& metrics) {
  metrics.family("memfathom_fleet_calibration_created_timestamp_seconds",
                 "When the newest calibration of a GPU type was made.");
  for (const FleetCalibration& one : calibrations) {
    if (newest_of(calibrations, one.provenance.type) != &one) continue;
    const Calibration& calibration = one.calibration;
    if (const auto created = seconds_of(calibration.created)) {
      metrics.sample({{"type", one.provenance.type},
                      {"calibration", calibration.name},
                      {"measured_on", one.provenance.node},
                      {"virtual", calibration.environment.is_virtual() ? "true" : "false"}},
                     *created);
    }
  }
}

// The verdicts of the last `fleet bench`; none if there was no bench.
void add_verdicts(const FleetFolder& folder, OpenMetrics& metrics) {
  const std::filesystem::path file = folder.path() / "bench/verdicts.json";
  std::ifstream input(file, std::ios::binary);
  if (!input) return;
  const std::string text{std::istreambuf_iterator<char>(input), {}};
  const json verdicts = parse_json_value(text, file.string());
  const auto nodes = verdicts.is_object() ? verdicts.find("nodes") : verdicts.end();
  if (nodes == verdicts.end() || !nodes->is_array())
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not a file of fleet bench; remove it", file.string()));
  const std::string baseline = text_at(verdicts, "baseline");
  metrics.family("memfathom_fleet_bench_verdict",
                 "1 for the verdict of the last bench of a node: same, better, version, suspect, "
                 "moved, undecided, other_gpu or not_measured.");
  for (const json& node : *nodes) {
    metrics.sample({{"node", text_at(node, "node")},
                    {"type", text_at(node, "type")},
                    {"baseline", baseline},
                    {"verdict", text_at(node, "verdict")}},
                   1);
  }
  if (const auto created = seconds_of(text_at(verdicts, "created"))) {
    metrics.family("memfathom_fleet_bench_timestamp_seconds", "When the last bench was judged.");
    metrics.sample({{"baseline", baseline}}, *created);
  }
}

// Lines of `estimate --batch --slim`.
void add_estimates(const std::string& file, OpenMetrics& metrics) {
  std::ifstream input(file);
  if (!input) throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read", file));
  metrics.family("memfathom_job_estimated_bytes",
                 "Estimated device memory of a job per GPU: its peak and the upper end of the "
                 "interval.");
  std::string line;
  while (read_line(input, file, DocumentLimits{}.max_file_bytes, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const json estimate = parse_json_value(line, file);
    const std::string id = estimate.is_object() ? text_at(estimate, "id") : "";
    for (const auto& [key, bound] :
         {std::pair{"device_peak_bytes", "peak"}, std::pair{"device_high_bytes", "high"}}) {
      const auto value = estimate.is_object() ? estimate.find(key) : estimate.end();
      if (value != estimate.end() && value->is_number_integer())
        metrics.sample({{"job", id}, {"bound", bound}}, value->get<std::int64_t>());
    }
  }
}

}  // namespace

ExitCode fleet_metrics(const Arguments& arguments, Context& context) {
  std::optional<std::string> folder_name;
  std::string partition;
  std::vector<std::string> estimates;
  OptionParser parser("fleet metrics");
  parser.option("--folder", folder_name);
  parser.option("--partition", partition);
  parser.option("--estimates", estimates);
  parser.parse(arguments);
  if (!partition.empty()) require_slurm_word("--partition", partition);
  const FleetFolder folder = fleet_folder(folder_name, context);
  const std::optional<Store> store = open_database_if_exists(context);
  const std::vector<FleetCalibration> calibrations =
      store ? fleet_calibrations(*store) : std::vector<FleetCalibration>{};
  OpenMetrics metrics;
  add_nodes(node_statuses(slurm_nodes(partition), calibrations, folder.seen_nodes()), metrics);
  add_calibrations(calibrations, metrics);
  add_verdicts(folder, metrics);
  for (const std::string& file : estimates) add_estimates(file, metrics);
  context.out << metrics.text();
  return ExitCode::kYes;
}

}  // namespace memfathom
