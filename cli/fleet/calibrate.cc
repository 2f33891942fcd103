#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/profiling.h"
#include "cli/database.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/provenance.h"
#include "cli/fleet/slurm.h"
#include "cli/fleet/submission.h"
#include "cli/render.h"
#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kJobNames = "memfathom-calibrate,memfathom-merge";
constexpr const char* kMerge = "merge";
constexpr const char* kUntyped = "gpu";  // the label of GPUs without a type

struct TypeNodes {
  int healthy = 0;
  std::vector<std::string> unhealthy;  // "n4 (down*: power supply)"
};

struct CalibrateCampaign {
  SubmitOptions submit;
  ProfileOptions profile;
  bool again = false;
  FleetFolder folder;
  fs::path path;
  std::string database;
  std::map<std::string, TypeNodes> types;
  CampaignState state;
  std::vector<TrackedJob> jobs;
  std::optional<TrackedJob> merge;
};

std::map<std::string, TypeNodes> types_of(const std::vector<SlurmNode>& nodes) {
  std::map<std::string, TypeNodes> types;
  for (const SlurmNode& node : nodes) {
    for (const GresGpus& gpus : node.gpus) {
      TypeNodes& type = types[gpus.type.empty() ? kUntyped : gpus.type];
      if (node.is_healthy()) {
        ++type.healthy;
      } else {
        type.unhealthy.push_back(fmt::format("{} ({}{}{})", node.name, node.state,
                                             node.reason.empty() ? "" : ": ", node.reason));
      }
    }
  }
  if (types.empty()) {
    throw Error(ErrorKind::kEnvironment,
                "sinfo shows no node with a GPU (gres); check GresTypes and gres.conf, or name "
                "another --partition");
  }
  return types;
}

TrackedJob tracked(const CalibrateCampaign& campaign, const std::string& label) {
  TrackedJob job;
  job.label = label;
  job.outcome_file = campaign.path / (label + ".outcome.json");
  job.log = campaign.path / (label + ".log");
  return job;
}

Arguments calibrate_arguments(const CalibrateCampaign& campaign) {
  const ProfileOptions& profile = campaign.profile;
  Arguments words{"--plan", profile.plan, "--framework", profile.framework};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--python", profile.python.value_or(""));
  add("--filter", profile.filter);
  add("--memory-ceiling", profile.memory_ceiling.value_or(""));
  if (profile.timeout) add("--timeout", fmt::format("{}", *profile.timeout));
  add("--module-loading", profile.module_loading);
  if (profile.no_cupti) words.emplace_back("--no-cupti");
  if (campaign.again) words.emplace_back("--again");
  return words;
}

void submit_type(CalibrateCampaign& campaign, TrackedJob& job) {
  std::error_code ignored;
  fs::remove(job.outcome_file, ignored);
  std::vector<std::string> options =
      sbatch_options(campaign.submit, "memfathom-calibrate", job.log);
  const std::string gres = job.label == kUntyped ? "gpu:1" : fmt::format("gpu:{}:1", job.label);
  options.insert(options.end(), {"--nodes=1", "--ntasks=1", "--exclusive", "--gres=" + gres});
  Arguments words{"calibrate",
                  "--campaign",
                  "calibrate",
                  "--type",
                  job.label,
                  "--device",
                  campaign.profile.device,
                  "--"};
  const Arguments rest = calibrate_arguments(campaign);
  words.insert(words.end(), rest.begin(), rest.end());
  job.id =
      submit_job(options, job_words(campaign.submit, campaign.folder, campaign.database, words));
  campaign.state.jobs[job.label] = job.id;
}

// Merges the databases of these types once their jobs have succeeded. The name and `singleton` keep
// two merges of a user apart; SQLite's lock makes others wait.
void submit_merge(CalibrateCampaign& campaign, const std::vector<const TrackedJob*>& types) {
  TrackedJob merge = tracked(campaign, kMerge);
  std::error_code ignored;
  fs::remove(merge.outcome_file, ignored);
  std::string after;
  Arguments words{"merge", "--campaign", "calibrate", "--"};
  for (const TrackedJob* job : types) {
    if (job->progress == JobProgress::kWaiting) after += ":" + job->id;
    words.push_back((campaign.path / (job->label + ".db")).string());
  }
  std::vector<std::string> options = sbatch_options(campaign.submit, "memfathom-merge", merge.log);
  options.insert(options.end(), {"--nodes=1", "--ntasks=1", "--kill-on-invalid-dep=yes"});
  options.push_back(after.empty() ? "--dependency=singleton"
                                  : fmt::format("--dependency=afterok{},singleton", after));
  merge.id =
      submit_job(options, job_words(campaign.submit, campaign.folder, campaign.database, words));
  campaign.state.jobs[kMerge] = merge.id;
  campaign.merge = std::move(merge);
}

bool is_active(const std::map<std::string, SlurmJobState>& known, const std::string& id) {
  const auto found = known.find(id);
  if (found == known.end()) return false;
  const std::string& state = found->second.state;
  return state == "PENDING" || state == "RUNNING" || state == "COMPLETING" ||
         state == "CONFIGURING" || state == "REQUEUED" || state == "SUSPENDED";
}

// A campaign that was left before its end: what succeeded is kept, what is queued is followed, and
// what failed is submitted again.
bool resume_job(const CalibrateCampaign& campaign, TrackedJob& job,
                const std::map<std::string, SlurmJobState>& known) {
  const auto at = campaign.state.jobs.find(job.label);
  if (campaign.state.finished || at == campaign.state.jobs.end()) return false;
  job.id = at->second;
  if (std::optional<JobOutcome> outcome = read_outcome(job.outcome_file)) {
    if (outcome->exit_code != 0) return false;
    job.progress = JobProgress::kDone;
    job.state = "done";
    job.node = outcome->node;
    job.outcome = std::move(outcome);
    return true;
  }
  return is_active(known, job.id);
}

void submit_all(CalibrateCampaign& campaign, const Context& context) {
  const std::map<std::string, SlurmJobState> known = jobs_named(kJobNames);
  const bool resumes = !campaign.state.finished;
  bool changed = false;
  int kept = 0;
  for (const auto& [type, nodes] : campaign.types) {
    TrackedJob job = tracked(campaign, type);
    if (nodes.healthy == 0) continue;
    if (resume_job(campaign, job, known)) {
      ++kept;
    } else {
      submit_type(campaign, job);
      changed = true;
      context.note(fmt::format("{}: job {} submitted", job.label, job.id));
    }
    campaign.jobs.push_back(std::move(job));
  }
  if (resumes && kept > 0)
    context.note(
        fmt::format("resuming: {} of {} jobs are done or queued", kept, campaign.jobs.size()));
  if (campaign.jobs.empty()) return;
  TrackedJob merge = tracked(campaign, kMerge);
  if (!changed && resume_job(campaign, merge, known)) {
    campaign.merge = std::move(merge);
  } else {
    if (resumes && is_active(known, campaign.state.jobs[kMerge]))
      cancel_job(campaign.state.jobs[kMerge]);
    std::vector<const TrackedJob*> all;
    for (const TrackedJob& job : campaign.jobs) all.push_back(&job);
    submit_merge(campaign, all);
  }
  campaign.state.finished = false;
  write_state(campaign.path, campaign.state);
}

// Follows all jobs; where some failed, merges what succeeded.
bool follow_all(CalibrateCampaign& campaign, const Context& context) {
  std::vector<TrackedJob> all = campaign.jobs;
  all.push_back(*campaign.merge);
  const bool ended = follow(all, kJobNames, campaign.submit.interval, context);
  campaign.merge = all.back();
  all.pop_back();
  campaign.jobs = std::move(all);
  if (!ended || campaign.merge->progress == JobProgress::kDone) return ended;
  std::vector<const TrackedJob*> succeeded;
  for (const TrackedJob& job : campaign.jobs) {
    if (job.progress == JobProgress::kDone) succeeded.push_back(&job);
  }
  if (succeeded.empty() || succeeded.size() == campaign.jobs.size()) return true;
  submit_merge(campaign, succeeded);
  write_state(campaign.path, campaign.state);
  std::vector<TrackedJob> merge{*campaign.merge};
  const bool merged = follow(merge, kJobNames, campaign.submit.interval, context);
  campaign.merge = merge.front();
  return merged;
}

bool all_done(const CalibrateCampaign& campaign) {
  return campaign.merge && campaign.merge->progress == JobProgress::kDone &&
         std::all_of(campaign.jobs.begin(), campaign.jobs.end(),
                     [](const TrackedJob& job) { return job.progress == JobProgress::kDone; });
}

const TrackedJob* job_of(const CalibrateCampaign& campaign, const std::string& type) {
  for (const TrackedJob& job : campaign.jobs) {
    if (job.label == type) return &job;
  }
  return nullptr;
}

struct TypeRow {
  std::string type, job, node, state, problem;
  int healthy = 0;
  int nodes = 0;
  std::optional<Calibration> calibration;
};

std::vector<TypeRow> rows_of(const CalibrateCampaign& campaign) {
  const std::optional<Store> store = Store::open_if_exists(campaign.database);
  const std::vector<FleetCalibration> calibrations =
      store ? fleet_calibrations(*store) : std::vector<FleetCalibration>{};
  std::vector<TypeRow> rows;
  for (const auto& [type, nodes] : campaign.types) {
    TypeRow row;
    row.type = type;
    row.healthy = nodes.healthy;
    row.nodes = nodes.healthy + static_cast<int>(nodes.unhealthy.size());
    row.state = "no healthy node";
    row.problem = fmt::format("{}", fmt::join(nodes.unhealthy, ", "));
    if (const TrackedJob* job = job_of(campaign, type)) {
      row.job = job->id;
      row.node = job->node;
      row.state = job->state;
      row.problem = job->problem;
    }
    if (const FleetCalibration* newest = newest_of(calibrations, type))
      row.calibration = newest->calibration;
    rows.push_back(std::move(row));
  }
  return rows;
}

void print(const CalibrateCampaign& campaign, Context& context) {
  const std::vector<TypeRow> rows = rows_of(campaign);
  const TrackedJob* merge = campaign.merge ? &*campaign.merge : nullptr;
  if (context.format == Format::kJson) {
    json types = json::array();
    for (const TypeRow& row : rows) {
      types.push_back({{"type", row.type},
                       {"nodes", row.nodes},
                       {"healthy_nodes", row.healthy},
                       {"job", row.job},
                       {"node", row.node},
                       {"state", row.state},
                       {"problem", row.problem},
                       {"calibration", row.calibration ? json{{"id", row.calibration->id},
                                                              {"name", row.calibration->name},
                                                              {"created", row.calibration->created}}
                                                       : json(nullptr)}});
    }
    context.out << json{{"schema", "memfathom.fleet-calibrate/1"},
                        {"database", campaign.database},
                        {"types", types},
                        {"merge", merge == nullptr ? json(nullptr)
                                                   : json{{"job", merge->id},
                                                          {"state", merge->state},
                                                          {"problem", merge->problem}}}}
                       .dump(2)
                << '\n';
    return;
  }
  Table table({{"type"},
               {"healthy nodes", Align::kRight},
               {"job", Align::kRight},
               {"node"},
               {"state"},
               {"calibration"},
               {"problem"}});
  for (const TypeRow& row : rows) {
    table.add_row(
        {row.type, fmt::format("{} of {}", row.healthy, row.nodes), row.job, row.node, row.state,
         row.calibration
             ? fmt::format("{} ({})", row.calibration->name, row.calibration->id.substr(0, 12))
             : "",
         row.problem});
  }
  context.out << rendered(table, context);
  if (merge != nullptr && context.format != Format::kCsv) {
    context.out << fmt::format("\nmerge into {}: job {} {}{}{}\n", campaign.database, merge->id,
                               merge->state, merge->problem.empty() ? "" : ": ", merge->problem);
  }
}

ExitCode code_of(const CalibrateCampaign& campaign) {
  if (campaign.jobs.size() < campaign.types.size()) return ExitCode::kEnvironment;
  return all_done(campaign) ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace

ExitCode fleet_calibrate(const Arguments& arguments, Context& context) {
  SubmitOptions submit;
  ProfileOptions profile;
  profile.device = "cuda:0";
  profile.plan = "standard";
  bool again = false;
  OptionParser parser("fleet calibrate");
  declare(parser, submit);
  declare(parser, profile);
  parser.flag("--again", again);
  parser.parse(arguments);
  check(submit);
  const FleetFolder folder = fleet_folder(submit.folder, context);
  const fs::path path = folder.campaign("calibrate");
  const CampaignLock lock(path);
  CalibrateCampaign campaign{submit,
                             profile,
                             again,
                             folder,
                             path,
                             fs::absolute(database_path(context)).string(),
                             types_of(slurm_nodes(submit.partition.value_or(""))),
                             read_state(path),
                             {},
                             {}};
  submit_all(campaign, context);
  if (campaign.submit.no_wait || campaign.jobs.empty()) {
    print(campaign, context);
    return campaign.jobs.empty() ? ExitCode::kEnvironment : ExitCode::kYes;
  }
  if (!follow_all(campaign, context)) return ExitCode::kNo;
  campaign.state.finished = all_done(campaign);
  write_state(campaign.path, campaign.state);
  print(campaign, context);
  return code_of(campaign);
}

}  // namespace memfathom
