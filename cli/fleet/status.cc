#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/profiling.h"
#include "cli/database.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/node_array.h"
#include "cli/fleet/node_stack.h"
#include "cli/render.h"
#include "cli/status/ages.h"
#include "core/error.h"
#include "core/json_io.h"

namespace memfathom {
namespace {

using nlohmann::json;

struct StatusOptions {
  SubmitOptions submit;
  bool survey = false;
  std::string device = "cuda:0";
  std::string framework = "memfathom";
  std::string python;
  std::int64_t concurrency = 32;
};

// Looks at the environment of every healthy node: seconds per node, nothing is measured.
void survey(const StatusOptions& options, const std::vector<SlurmNode>& nodes,
            const FleetFolder& folder, Context& context) {
  const std::vector<ArrayNode> healthy = healthy_array_nodes(nodes);
  if (healthy.empty()) return;
  NodeArray array{"survey",
                  "survey",
                  "memfathom-survey",
                  options.concurrency,
                  {"--device", options.device},
                  {"--framework", options.framework}};
  if (!options.python.empty()) array.rest.insert(array.rest.end(), {"--python", options.python});
  const CampaignLock lock(folder.campaign(array.campaign));
  const auto jobs = run_array(array, healthy, options.submit, folder,
                              std::filesystem::absolute(database_path(context)).string(), context);
  if (!jobs) return;
  for (const TrackedJob& job : *jobs) {
    if (job.progress == JobProgress::kFailed)
      context.warn(fmt::format("{} could not be surveyed: {}", job.label, job.problem));
  }
}

json changes_json(const std::vector<StackChange>& changes) {
  json all = json::array();
  for (const StackChange& change : changes)
    all.push_back({{"name", change.key}, {"before", change.before}, {"after", change.after}});
  return all;
}

json status_json(const NodeStatus& status) {
  json calibration = nullptr;
  if (status.calibration) {
    const FleetCalibration& c = *status.calibration;
    calibration = {{"id", c.calibration.id},
                   {"name", c.calibration.name},
                   {"created", c.calibration.created},
                   {"virtual", c.calibration.environment.is_virtual()},
                   {"measured_on", {{"node", c.provenance.node}, {"job", c.provenance.job}}}};
  }
  json seen = nullptr;
  if (status.seen) {
    seen = {{"at", status.seen->seen},
            {"job", status.seen->job},
            {"environment", to_json(status.seen->environment)}};
  }
  return {{"node", status.node.name},
          {"state", status.node.state},
          {"reason", status.node.reason},
          {"type", status.gpus.type},
          {"gpus", status.gpus.count},
          {"status", enum_name(status.state)},
          {"calibration", calibration},
          {"seen", seen},
          {"changes", changes_json(status.changes)}};
}

Style style_of(CalibrationState state) {
  switch (state) {
    case CalibrationState::kCalibrated: return Style::kGood;
    case CalibrationState::kStale: return Style::kBad;
    case CalibrationState::kNotCalibrated: return Style::kWarning;
    case CalibrationState::kNotSeen: return Style::kPlain;
  }
  return Style::kPlain;
}

void print(const std::vector<NodeStatus>& statuses, Context& context) {
  if (context.format == Format::kJson) {
    json nodes = json::array();
    for (const NodeStatus& status : statuses) nodes.push_back(status_json(status));
    context.out << json{{"schema", "memfathom.fleet-status/1"}, {"nodes", nodes}}.dump(2) << '\n';
    return;
  }
  Table table({{"node"},
               {"state"},
               {"type"},
               {"gpus", Align::kRight},
               {"status"},
               {"calibration"},
               {"age", Align::kRight},
               {"changed since"}});
  const std::int64_t now = seconds_now();
  for (const NodeStatus& status : statuses) {
    std::string name;
    std::string age;
    if (status.calibration) {
      const Calibration& calibration = status.calibration->calibration;
      name = fmt::format("{} ({}, from {})", calibration.name, calibration.id.substr(0, 12),
                         status.calibration->provenance.node);
      if (const std::optional<std::int64_t> created = seconds_of(calibration.created))
        age = age_text(now - *created);
    }
    table.add_row({status.node.name, status.node.state, status.gpus.type,
                   std::to_string(status.gpus.count),
                   Cell(std::string(enum_name(status.state)), style_of(status.state)), name, age,
                   in_words(status.changes)});
  }
  context.out << rendered(table, context);
}

}  // namespace

ExitCode fleet_status(const Arguments& arguments, Context& context) {
  StatusOptions options;
  OptionParser parser("fleet status");
  declare(parser, options.submit);
  parser.flag("--survey", options.survey);
  parser.option("--device", options.device);
  parser.option("--framework", options.framework);
  parser.option("--python", options.python);
  parser.option("--concurrency", options.concurrency);
  parser.parse(arguments);
  check(options.submit);
  require_concurrency(options.concurrency);
  const FleetFolder folder = fleet_folder(options.submit.folder, context);
  const std::vector<SlurmNode> nodes = slurm_nodes(options.submit.partition.value_or(""));
  if (options.survey) survey(options, nodes, folder, context);
  const std::optional<Store> store = open_database_if_exists(context);
  const std::vector<NodeStatus> statuses =
      node_statuses(nodes, store ? fleet_calibrations(*store) : std::vector<FleetCalibration>{},
                    folder.seen_nodes());
  if (statuses.empty()) context.note("sinfo shows no node with a GPU (gres)");
  print(statuses, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
