#include "cli/fleet/node_verdicts.h"

#include <fmt/format.h>

#include "cli/bench/compare_text.h"
#include "cli/fleet/node_stack.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxPooled = 16;

bool are_siblings(const BenchFile& a, const BenchFile& b) {
  return a.environment.device_key() == b.environment.device_key() &&
         a.environment.stack_key() == b.environment.stack_key();
}

// What moved most, in words: the first benchmark is the worst.
std::string worst_of(const BenchComparison& comparison) {
  for (const ComparedBenchmark& benchmark : comparison.benchmarks) {
    if (benchmark.verdict != BenchVerdict::kWorse) continue;
    const std::string change = change_in_words(benchmark);
    return fmt::format("{}: {}", benchmark.what.empty() ? benchmark.label : benchmark.what,
                       change.empty() ? benchmark.reason : change);
  }
  return comparison_summary(comparison);
}

std::string blamed_of(const BenchComparison& comparison) {
  for (const ComparedBenchmark& benchmark : comparison.benchmarks) {
    if (benchmark.verdict == BenchVerdict::kWorse && !benchmark.blamed.empty())
      return benchmark.blamed;
  }
  return in_words(comparison.stack);
}

JudgedNode without_figures(JudgedNode judged, NodeVerdict verdict, std::string why) {
  judged.verdict = verdict;
  judged.moved = std::move(why);
  return judged;
}

void judge_measured(JudgedNode& judged, const std::optional<BenchComparison>& since,
                    const std::optional<BenchComparison>& among) {
  if (since) judged.stack = since->stack;
  if (among && among->verdict() == "worse") {
    judged.verdict = NodeVerdict::kSuspect;
    judged.moved = worst_of(*among);
  } else if (since && since->verdict() == "worse") {
    judged.verdict = since->stack.empty() ? NodeVerdict::kMoved : NodeVerdict::kVersion;
    judged.moved = worst_of(*since);
    if (!since->stack.empty()) judged.blamed = blamed_of(*since);
  } else if ((since && since->verdict() == "undecided") ||
             (among && among->verdict() == "undecided")) {
    judged.verdict = NodeVerdict::kUndecided;
    judged.moved = comparison_summary(since && since->verdict() == "undecided" ? *since : *among);
  } else if (since && since->verdict() == "better") {
    judged.verdict = NodeVerdict::kBetter;
    judged.moved = comparison_summary(*since);
  }
}

JudgedNode judge(const BenchedNode& node, const std::vector<BenchedNode>& all,
                 const std::map<std::string, BenchFile>& baselines, const CompareOptions& options) {
  JudgedNode judged;
  judged.node = node.node;
  judged.type = node.type;
  if (!node.file) return without_figures(judged, NodeVerdict::kNotMeasured, node.problem);
  std::vector<const BenchFile*> siblings;
  for (const BenchedNode& other : all) {
    if (&other != &node && other.type == node.type && other.file &&
        are_siblings(*other.file, *node.file))
      siblings.push_back(&*other.file);
  }
  judged.siblings = static_cast<int>(siblings.size());
  std::optional<BenchComparison> among;
  if (!siblings.empty()) among = compare(pooled(siblings), *node.file, options);
  const auto base = baselines.find(node.type);
  if (base == baselines.end() && !among) {
    return without_figures(judged, NodeVerdict::kUndecided,
                           "its type has no baseline, and no sibling runs the same versions");
  }
  std::optional<BenchComparison> since;
  if (base != baselines.end()) {
    const Environment& before = base->second.environment;
    if (before.device_key() != node.file->environment.device_key()) {
      return without_figures(judged, NodeVerdict::kOtherGpu,
                             fmt::format("it has a {}, the baseline is of a {}",
                                         node.file->environment.gpu, before.gpu));
    }
    since = compare(base->second, *node.file, options);
  }
  judge_measured(judged, since, among);
  return judged;
}

}  // namespace

std::string_view in_words(NodeVerdict verdict) {
  switch (verdict) {
    case NodeVerdict::kSame: return "same";
    case NodeVerdict::kBetter: return "better";
    case NodeVerdict::kVersion: return "worse after a version change";
    case NodeVerdict::kSuspect: return "hardware suspect";
    case NodeVerdict::kMoved: return "worse, no version changed";
    case NodeVerdict::kUndecided: return "undecided";
    case NodeVerdict::kOtherGpu: return "another GPU";
    case NodeVerdict::kNotMeasured: return "not measured";
  }
  return "";
}

bool is_regression(NodeVerdict verdict) {
  return verdict == NodeVerdict::kVersion || verdict == NodeVerdict::kSuspect ||
         verdict == NodeVerdict::kMoved;
}

BenchFile pooled(const std::vector<const BenchFile*>& files) {
  BenchFile pool = *files.front();
  pool.rows.clear();
  pool.repetitions = 0;
  const std::size_t used = std::min(files.size(), kMaxPooled);
  for (std::size_t i = 0; i < used; ++i) {
    const BenchFile& file = *files[i * files.size() / used];
    for (BenchRow row : file.rows) {
      row.repetition += pool.repetitions;
      pool.rows.push_back(std::move(row));
    }
    pool.repetitions += file.repetitions;
  }
  return pool;
}

std::vector<JudgedNode> judge_nodes(const std::vector<BenchedNode>& nodes,
                                    const std::map<std::string, BenchFile>& baselines,
                                    const CompareOptions& options) {
  std::vector<JudgedNode> judged;
  for (const BenchedNode& node : nodes) judged.push_back(judge(node, nodes, baselines, options));
  return judged;
}

}  // namespace memfathom
