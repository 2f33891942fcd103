// `fleet job`: what the jobs of a campaign run on their nodes.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "cli/bench/bench.h"
#include "cli/calibrate/profiling.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/fleet_folder.h"
#include "cli/fleet/provenance.h"
#include "cli/fleet/slurm.h"
#include "cli/fleet/submission.h"
#include "core/error.h"
#include "core/parse_number.h"
#include "core/suggest.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

struct JobArguments {
  std::string kind;
  std::optional<std::string> folder;
  std::string campaign, type, device, nodes;
  std::vector<std::string> plants;
  Arguments rest;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string this_node() {
  std::string name = variable("SLURMD_NODENAME");
  if (!name.empty()) return name;
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string this_job() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? variable("SLURM_JOB_ID")
                       : fmt::format("{}_{}", array, variable("SLURM_ARRAY_TASK_ID"));
}

Context with_database(const Context& context, const fs::path& database) {
  Context changed = context;
  changed.db = database.string();
  return changed;
}

// Stopped by a signal, the job is not over: Slurm may start it again.
bool was_stopped(ExitCode code) { return static_cast<int>(code) > 128; }

// The calibration that the run made or found, annotated once.
void keep_provenance(Store& store, const Provenance& provenance) {
  const std::vector<Calibration> all = store.calibrations();
  if (all.empty()) return;
  for (const Annotation& annotation : store.annotations(all.back().id)) {
    if (provenance_in(annotation.note)) return;
  }
  store.annotate({"", all.back().id, utc_now(), to_note(provenance)});
}

ExitCode calibrate_here(const JobArguments& job, const FleetFolder& folder,
                        const fs::path& campaign, Context& context) {
  const std::string node = this_node();
  Arguments arguments{"--device", device_for(job.device, job.type, node)};
  arguments.insert(arguments.end(), job.rest.begin(), job.rest.end());
  const fs::path database = campaign / (job.type + ".db");
  Context own = with_database(context, database);
  const ExitCode code = run_calibrate(arguments, own);
  if (was_stopped(code)) return code;
  Store store = Store::open(database, Store::Mode::kReadWrite);
  keep_provenance(store, {job.type, node, this_job()});
  const std::vector<Run> runs = store.runs();
  if (!runs.empty())
    folder.write_seen({node, job.type, this_job(), utc_now(), runs.back().environment});
  return code;
}

struct AssignedNode {
  std::string name, type, label;  // label: names its files
};

// The line of the campaign's list that belongs to this task: "NODE TYPE LABEL".
AssignedNode assigned_node(const std::string& list) {
  const std::optional<int> task = parse_number<int>(variable("SLURM_ARRAY_TASK_ID"));
  std::ifstream input(list);
  AssignedNode node;
  for (int line = 0; task && input >> node.name >> node.type >> node.label; ++line) {
    if (line == *task) return node;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{} has no line for array task \"{}\"; submit the campaign again", list,
                          variable("SLURM_ARRAY_TASK_ID")));
}

std::string plant_of(const std::vector<std::string>& plants, const std::string& node) {
  for (const std::string& plant : plants) {
    if (plant.starts_with(node + ":")) return plant.substr(node.size() + 1);
  }
  return "";
}

ExitCode bench_here(const JobArguments& job, const FleetFolder& folder, const fs::path& campaign,
                    const AssignedNode& node, Context& context) {
  const std::string out = (campaign / (node.label + ".json")).string();
  Arguments arguments{"--device", device_for(job.device, node.type, node.name), "--out", out};
  if (const std::string plant = plant_of(job.plants, node.label); !plant.empty())
    arguments.insert(arguments.end(), {"--plant", plant});
  arguments.insert(arguments.end(), job.rest.begin(), job.rest.end());
  const ExitCode code = bench_run(arguments, context);
  folder.write_seen(
      {node.name, node.type, this_job(), utc_now(), read_bench_file(out).environment});
  return code;
}

ExitCode survey_here(const JobArguments& job, const FleetFolder& folder, const AssignedNode& node) {
  ProfileOptions options;
  OptionParser parser("fleet job");
  declare(parser, options);
  parser.parse(job.rest);
  options.device = device_for(job.device, node.type, node.name);
  folder.write_seen({node.name, node.type, this_job(), utc_now(), prepare(options).environment});
  return ExitCode::kYes;
}

void require_this_node(const std::string& expected) {
  if (this_node() == expected) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("this task is for node {}, but runs on {}", expected, this_node()));
}

// Runs the task, and writes how it ended unless Slurm may start it again.
template <typename Task>
ExitCode reported(const fs::path& outcome_file, const Task& task) {
  JobOutcome outcome{0, this_node(), this_job(), "", ""};
  const auto write = [&](ExitCode code) {
    outcome.exit_code = static_cast<int>(code);
    outcome.finished = utc_now();
    write_outcome(outcome_file, outcome);
  };
  try {
    const ExitCode code = task();
    if (!was_stopped(code)) write(code);
    return code;
  } catch (const Error& error) {
    outcome.message = error.what();
    write(exit_code_of(error.kind()));
    throw;
  }
}

JobArguments read_arguments(const Arguments& arguments) {
  JobArguments job;
  OptionParser parser("fleet job");
  parser.option("--folder", job.folder);
  parser.option("--campaign", job.campaign);
  parser.option("--type", job.type);
  parser.option("--device", job.device);
  parser.option("--nodes", job.nodes);
  parser.option("--plant", job.plants);
  parser.positional("KIND", job.kind);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  parser.parse({arguments.begin(), dashes});
  if (dashes != arguments.end()) job.rest.assign(dashes + 1, arguments.end());
  static constexpr std::array<std::string_view, 4> kKinds{"calibrate", "merge", "bench", "survey"};
  if (std::find(kKinds.begin(), kKinds.end(), job.kind) == kKinds.end()) {
    throw Error(ErrorKind::kUsage, fmt::format("fleet job: unknown kind \"{}\"; {}", job.kind,
                                               suggestion(job.kind, kKinds)));
  }
  return job;
}

}  // namespace

ExitCode fleet_job(const Arguments& arguments, Context& context) {
  const JobArguments job = read_arguments(arguments);
  const FleetFolder folder = fleet_folder(job.folder, context);
  const fs::path campaign = folder.campaign(job.campaign);
  if (job.kind == "calibrate") {
    require_slurm_word("--type", job.type);
    return reported(campaign / (job.type + ".outcome.json"),
                    [&] { return calibrate_here(job, folder, campaign, context); });
  }
  if (job.kind == "merge") {
    Arguments merge{"merge"};
    merge.insert(merge.end(), job.rest.begin(), job.rest.end());
    return reported(campaign / "merge.outcome.json", [&] { return run_db(merge, context); });
  }
  const AssignedNode node = assigned_node(job.nodes);
  require_slurm_word("the node in --nodes", node.label);
  return reported(campaign / (node.label + ".outcome.json"), [&] {
    require_this_node(node.name);
    return job.kind == "bench" ? bench_here(job, folder, campaign, node, context)
                               : survey_here(job, folder, node);
  });
}

}  // namespace memfathom
