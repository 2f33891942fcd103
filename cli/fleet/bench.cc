#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/bench/compare.h"
#include "cli/clock.h"
#include "cli/database.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/node_array.h"
#include "cli/fleet/node_verdicts.h"
#include "cli/fleet/provenance.h"
#include "cli/fleet/slurm.h"
#include "cli/render.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "db/store.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxReason = 200;

struct FleetBenchOptions {
  SubmitOptions submit;
  std::string baseline, save_baseline;
  std::string device = "cuda:0";
  std::string scale, filter, repetitions;
  std::vector<std::string> plants;
  std::optional<std::string> fail_threshold;
  std::int64_t concurrency = 8;
  bool drain = false;
  bool strict = false;

  const std::string& name() const { return baseline.empty() ? save_baseline : baseline; }
};

FleetBenchOptions read_options(const Arguments& arguments) {
  FleetBenchOptions options;
  OptionParser parser("fleet bench");
  declare(parser, options.submit);
  parser.option("--baseline", options.baseline);
  parser.option("--save-baseline", options.save_baseline);
  parser.option("--device", options.device);
  parser.option("--scale", options.scale);
  parser.option("--filter", options.filter);
  parser.option("--repetitions", options.repetitions);
  parser.option("--plant", options.plants);
  parser.option("--fail-threshold", options.fail_threshold);
  parser.option("--concurrency", options.concurrency);
  parser.flag("--drain", options.drain);
  parser.flag("--strict", options.strict);
  parser.parse(arguments);
  check(options.submit);
  require_concurrency(options.concurrency);
  if (options.baseline.empty() == options.save_baseline.empty()) {
    throw Error(ErrorKind::kUsage,
                "fleet bench: write --baseline NAME to compare with a baseline, or --save-baseline "
                "NAME to make it");
  }
  require_slurm_word("the baseline's name", options.name());
  return options;
}

NodeArray array_of(const FleetBenchOptions& options) {
  NodeArray array{"bench",
                  "bench/" + options.name(),
                  "memfathom-bench",
                  options.concurrency,
                  {"--device", options.device},
                  {}};
  for (const std::string& plant : options.plants)
    array.options.insert(array.options.end(), {"--plant", plant});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) array.rest.insert(array.rest.end(), {option, value});
  };
  add("--scale", options.scale);
  add("--filter", options.filter);
  add("--repetitions", options.repetitions);
  return array;
}

std::vector<BenchedNode> benched_nodes(const std::vector<SlurmNode>& nodes,
                                       const std::vector<TrackedJob>& jobs,
                                       const fs::path& campaign) {
  std::vector<BenchedNode> benched;
  for (const SlurmNode& node : nodes) {
    for (const ArrayNode& part : array_nodes_of(node)) {
      BenchedNode one{part.name, part.type, {}, {}};
      const auto job = std::find_if(jobs.begin(), jobs.end(),
                                    [&](const TrackedJob& j) { return j.label == part.label(); });
      if (job == jobs.end()) {
        one.problem =
            fmt::format("{}{}{}", node.state, node.reason.empty() ? "" : ": ", node.reason);
      } else if (job->progress != JobProgress::kDone) {
        one.problem = fmt::format("job {} {}: {}", job->id, job->state, job->problem);
      } else {
        one.file = read_bench_file((campaign / (part.label() + ".json")).string());
      }
      benched.push_back(std::move(one));
    }
  }
  return benched;
}

std::map<std::string, BenchFile> baselines_of(const std::string& name,
                                              const std::vector<BenchedNode>& nodes,
                                              const Context& context) {
  std::map<std::string, BenchFile> baselines;
  const std::optional<Store> store = open_database_if_exists(context);
  for (const BenchedNode& node : nodes) {
    if (!store || baselines.contains(node.type)) continue;
    const std::string full = fmt::format("{}/{}", name, node.type);
    if (const std::optional<Baseline> stored = store->find_baseline(full))
      baselines.emplace(node.type, bench_file_from(stored->document, "baseline " + full));
  }
  if (baselines.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("no type has a baseline \"{}\"; make it on a good day with `memfathom "
                            "fleet bench --save-baseline {}`",
                            name, name));
  }
  return baselines;
}

// The baseline of a type is that of all its nodes. Suspects are left out of it.
void save_baselines(const std::string& name, const std::vector<BenchedNode>& nodes,
                    const std::vector<JudgedNode>& judged, Context& context) {
  std::map<std::string, std::vector<const BenchFile*>> files;
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].file || judged[i].verdict == NodeVerdict::kSuspect) continue;
    files[nodes[i].type].push_back(&*nodes[i].file);
    names[nodes[i].type].push_back(nodes[i].node);
  }
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  for (const auto& [type, of_type] : files) {
    const BenchFile pool = pooled(of_type);
    const std::string id = store.insert_baseline(
        {"", fmt::format("{}/{}", name, type), pool.environment, utc_now(), to_text(pool)});
    store.annotate(
        {"", id, utc_now(), to_note({type, fmt::format("{}", fmt::join(names[type], ",")), ""})});
    context.note(fmt::format("baseline {}/{} saved: {} nodes, {} ({})", name, type, of_type.size(),
                             pool.environment.gpu, id.substr(0, 12)));
  }
}

std::string drain_reason(const JudgedNode& node) {
  std::string reason = "memfathom: " + node.moved;
  for (std::size_t at = reason.find("→"); at != std::string::npos; at = reason.find("→"))
    reason.replace(at, std::string_view("→").size(), "->");
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return reason.substr(0, kMaxReason);
}

// Only suspects: a node whose whole type changed with a version is as good as the others.
std::vector<std::string> drain_suspects(const std::vector<JudgedNode>& judged,
                                        const Context& context) {
  std::vector<std::string> drained;
  for (const JudgedNode& node : judged) {
    if (node.verdict != NodeVerdict::kSuspect) continue;
    scontrol_update({"NodeName=" + node.node, "State=DRAIN", "Reason=" + drain_reason(node)});
    context.note(fmt::format("{} is drained: {}", node.node, drain_reason(node)));
    drained.push_back(node.node);
  }
  return drained;
}

json verdict_json(const std::vector<JudgedNode>& judged, const std::vector<std::string>& drained,
                  const std::vector<BenchedNode>& nodes, const std::string& baseline) {
  json rows = json::array();
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const JudgedNode& node = judged[i];
    json stack = json::array();
    for (const StackChange& change : node.stack)
      stack.push_back({{"name", change.key}, {"before", change.before}, {"after", change.after}});
    rows.push_back(
        {{"node", node.node},
         {"type", node.type},
         {"verdict", enum_name(node.verdict)},
         {"moved", node.moved},
         {"blamed", node.blamed},
         {"siblings", node.siblings},
         {"stack_changes", stack},
         {"gpu", nodes[i].file ? json(nodes[i].file->environment.gpu) : json(nullptr)},
         {"drained", std::find(drained.begin(), drained.end(), node.node) != drained.end()}});
  }
  const bool worse = std::any_of(judged.begin(), judged.end(), [](const JudgedNode& node) {
    return is_regression(node.verdict);
  });
  return {{"schema", "memfathom.fleet-bench/1"},
          {"baseline", baseline},
          {"created", utc_now()},
          {"verdict", worse ? "worse" : "same"},
          {"nodes", rows}};
}

Style style_of(NodeVerdict verdict) {
  if (is_regression(verdict)) return Style::kBad;
  if (verdict == NodeVerdict::kBetter) return Style::kGood;
  return verdict == NodeVerdict::kSame ? Style::kDim : Style::kWarning;
}

void print_table(const std::vector<JudgedNode>& judged, Context& context) {
  Table table(
      {{"node"}, {"type"}, {"verdict"}, {"what moved"}, {"to blame"}, {"siblings", Align::kRight}});
  for (const JudgedNode& node : judged) {
    table.add_row({node.node, node.type,
                   Cell(std::string(in_words(node.verdict)), style_of(node.verdict)), node.moved,
                   node.blamed, std::to_string(node.siblings)});
  }
  context.out << rendered(table, context);
}

ExitCode code_of(const std::vector<JudgedNode>& judged, const std::vector<TrackedJob>& jobs,
                 bool strict) {
  bool undecided = false;
  for (const JudgedNode& node : judged) {
    if (is_regression(node.verdict)) return ExitCode::kNo;
    undecided = undecided || node.verdict == NodeVerdict::kUndecided ||
                node.verdict == NodeVerdict::kOtherGpu;
  }
  const bool all_measured = std::all_of(jobs.begin(), jobs.end(), [](const TrackedJob& job) {
    return job.progress == JobProgress::kDone;
  });
  if (!all_measured) return ExitCode::kEnvironment;
  return strict && undecided ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace

ExitCode fleet_bench(const Arguments& arguments, Context& context) {
  const FleetBenchOptions options = read_options(arguments);
  CompareOptions thresholds;
  if (options.fail_threshold) read_fail_threshold(*options.fail_threshold, thresholds);
  const FleetFolder folder = fleet_folder(options.submit.folder, context);
  const NodeArray array = array_of(options);
  const fs::path campaign = folder.campaign(array.campaign);
  const CampaignLock lock(campaign);
  const std::vector<SlurmNode> nodes = slurm_nodes(options.submit.partition.value_or(""));
  const std::vector<ArrayNode> healthy = healthy_array_nodes(nodes);
  if (healthy.empty()) {
    throw Error(ErrorKind::kEnvironment,
                "sinfo shows no healthy node with a GPU (gres); `sinfo -R` says why");
  }
  const std::string database = fs::absolute(database_path(context)).string();
  const auto jobs = run_array(array, healthy, options.submit, folder, database, context);
  if (!jobs) return ExitCode::kNo;
  if (options.submit.no_wait) return ExitCode::kYes;

  const std::vector<BenchedNode> benched = benched_nodes(nodes, *jobs, campaign);
  std::map<std::string, BenchFile> baselines;
  if (!options.baseline.empty()) baselines = baselines_of(options.baseline, benched, context);
  const std::vector<JudgedNode> judged = judge_nodes(benched, baselines, thresholds);
  if (!options.save_baseline.empty())
    save_baselines(options.save_baseline, benched, judged, context);
  const std::vector<std::string> drained =
      options.drain ? drain_suspects(judged, context) : std::vector<std::string>{};
  const json verdicts = verdict_json(judged, drained, benched, options.name());
  write_file_atomically((folder.campaign("bench") / "verdicts.json").string(),
                        verdicts.dump(2) + "\n");
  if (context.format == Format::kJson) {
    context.out << verdicts.dump(2) << '\n';
  } else {
    print_table(judged, context);
  }
  return code_of(judged, *jobs, options.strict);
}

}  // namespace memfathom
