#include "cli/fleet/node_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/fleet/slurm.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

// A list of its own for each submission: tasks of an earlier one may still wait.
fs::path unused_list(const fs::path& campaign) {
  for (int number = 1;; ++number) {
    fs::path file = campaign / fmt::format("nodes-{}.txt", number);
    if (!fs::exists(file)) return file;
  }
}

std::string list_text(const std::vector<ArrayNode>& nodes) {
  std::string text;
  for (const ArrayNode& node : nodes)
    text += fmt::format("{} {} {}\n", node.name, node.type, node.label());
  return text;
}

// Held until each task has its node; if one cannot be bound, none runs.
void bind_tasks(const std::string& id, const std::vector<ArrayNode>& nodes) {
  try {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      scontrol_update(
          {fmt::format("JobId={}_{}", id, i), fmt::format("ReqNodeList={}", nodes[i].name)});
    }
    release_job(id);
  } catch (const Error&) {
    cancel_job(id);
    throw;
  }
}

TrackedJob tracked(const fs::path& campaign, const std::string& label, const std::string& id) {
  TrackedJob job;
  job.label = label;
  job.id = id;
  job.outcome_file = campaign / (label + ".outcome.json");
  job.log = campaign / (id + ".log");
  return job;
}

// Whether a task of an unfinished campaign need not be submitted again.
bool resume_task(TrackedJob& job, const std::map<std::string, SlurmJobState>& known) {
  if (std::optional<JobOutcome> outcome = read_outcome(job.outcome_file)) {
    if (outcome->exit_code != 0) return false;
    job.progress = JobProgress::kDone;
    job.state = "done";
    job.node = outcome->node;
    job.outcome = std::move(outcome);
    return true;
  }
  const auto found = known.find(job.id);
  return found != known.end() &&
         (found->second.state == "PENDING" || found->second.state == "RUNNING" ||
          found->second.state == "COMPLETING" || found->second.state == "REQUEUED");
}

void remove_results(const fs::path& campaign, const std::string& label) {
  std::error_code ignored;
  for (const char* ending : {".outcome.json", ".json"})
    fs::remove(campaign / (label + ending), ignored);
}

// The jobs of one array, which starts when the one before has ended.
std::vector<TrackedJob> submit_one(const NodeArray& array, const std::vector<ArrayNode>& nodes,
                                   const std::string& before, const SubmitOptions& submit,
                                   const FleetFolder& folder, const std::string& database) {
  const fs::path campaign = folder.campaign(array.campaign);
  const fs::path list = unused_list(campaign);
  write_file_atomically(list.string(), list_text(nodes));
  Arguments words{array.kind, "--campaign", array.campaign, "--nodes", list.string()};
  words.insert(words.end(), array.options.begin(), array.options.end());
  words.emplace_back("--");
  words.insert(words.end(), array.rest.begin(), array.rest.end());
  std::vector<std::string> options = sbatch_options(submit, array.job_name, campaign / "%A_%a.log");
  options.insert(
      options.end(),
      {"--hold", "--nodes=1", "--ntasks=1", "--exclusive", "--gres=" + nodes.front().gres(),
       fmt::format("--array=0-{}%{}", nodes.size() - 1, array.concurrency)});
  if (!before.empty()) options.push_back("--dependency=afterany:" + before);
  const std::string id = submit_job(options, job_words(submit, folder, database, words));
  bind_tasks(id, nodes);
  std::vector<TrackedJob> jobs;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    jobs.push_back(tracked(campaign, nodes[i].label(), fmt::format("{}_{}", id, i)));
  return jobs;
}

std::string array_id(const TrackedJob& job) { return job.id.substr(0, job.id.find('_')); }

}  // namespace

std::vector<ArrayNode> array_nodes_of(const SlurmNode& node) {
  std::vector<ArrayNode> found;
  for (const GresGpus& gpus : node.gpus) {
    const std::string type = gpus.type.empty() ? "gpu" : gpus.type;
    const auto is_type = [&](const ArrayNode& one) { return one.type == type; };
    if (std::none_of(found.begin(), found.end(), is_type)) found.push_back({node.name, type});
  }
  for (ArrayNode& one : found) one.is_mixed = found.size() > 1;
  return found;
}

std::vector<ArrayNode> healthy_array_nodes(const std::vector<SlurmNode>& nodes) {
  std::vector<ArrayNode> healthy;
  for (const SlurmNode& node : nodes) {
    if (!node.is_healthy()) continue;
    for (ArrayNode& one : array_nodes_of(node)) healthy.push_back(std::move(one));
  }
  return healthy;
}

std::vector<TrackedJob> submit_array(const NodeArray& array, const std::vector<ArrayNode>& nodes,
                                     const SubmitOptions& submit, const FleetFolder& folder,
                                     const std::string& database) {
  // All tasks of an array ask for the same GPUs.
  std::map<std::string, std::vector<ArrayNode>> by_gres;
  for (const ArrayNode& node : nodes) by_gres[node.gres()].push_back(node);
  const std::size_t most = max_array_size();
  std::vector<TrackedJob> jobs;
  std::string before;
  for (const auto& [gres, group] : by_gres) {
    for (std::size_t at = 0; at < group.size(); at += most) {
      const auto first = group.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last = first + static_cast<std::ptrdiff_t>(std::min(most, group.size() - at));
      for (TrackedJob& job : submit_one(array, {first, last}, before, submit, folder, database))
        jobs.push_back(std::move(job));
      before = array_id(jobs.back());
    }
  }
  return jobs;
}

std::optional<std::vector<TrackedJob>> run_array(
    const NodeArray& array, const std::vector<ArrayNode>& nodes, const SubmitOptions& submit,
    const FleetFolder& folder, const std::string& database, const Context& context) {
  const fs::path path = folder.campaign(array.campaign);
  CampaignState state = read_state(path);
  const std::map<std::string, SlurmJobState> known = jobs_named(array.job_name);
  std::vector<TrackedJob> jobs;
  std::vector<ArrayNode> to_submit;
  for (const ArrayNode& node : nodes) {
    const auto at = state.jobs.find(node.label());
    if (!state.finished && at != state.jobs.end()) {
      TrackedJob job = tracked(path, node.label(), at->second);
      if (resume_task(job, known)) {
        jobs.push_back(std::move(job));
        continue;
      }
    }
    remove_results(path, node.label());
    to_submit.push_back(node);
  }
  if (!jobs.empty())
    context.note(
        fmt::format("resuming: {} of {} tasks are done or queued", jobs.size(), nodes.size()));
  if (!to_submit.empty()) {
    std::vector<TrackedJob> submitted = submit_array(array, to_submit, submit, folder, database);
    std::vector<std::string> ids;
    for (const TrackedJob& job : submitted) {
      if (ids.empty() || ids.back() != array_id(job)) ids.push_back(array_id(job));
    }
    context.note(
        fmt::format("{} tasks submitted as job {}", submitted.size(), fmt::join(ids, ", then ")));
    for (TrackedJob& job : submitted) jobs.push_back(std::move(job));
  }
  state.jobs.clear();
  for (const TrackedJob& job : jobs) state.jobs[job.label] = job.id;
  state.finished = false;
  write_state(path, state);
  if (submit.no_wait) return jobs;
  if (!follow(jobs, array.job_name, submit.interval, context)) return std::nullopt;
  state.finished = std::all_of(jobs.begin(), jobs.end(), [](const TrackedJob& job) {
    return job.progress == JobProgress::kDone;
  });
  write_state(path, state);
  return jobs;
}

}  // namespace memfathom
