// node_verdicts: how the nodes of a fleet differ from their type, and what is to blame.
//
// A node is compared with the baseline of its type (what was before) and with its siblings: nodes
// of the same type that run the same versions now. Worse than its siblings, a node has changed on
// its own: its hardware is suspect. Worse than the baseline as its siblings are, the type has
// changed, and the versions that differ from the baseline's are to blame.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "profiler/regression/compare.h"

namespace memfathom {

enum class NodeVerdict {
  kSame,
  kBetter,
  kVersion,
  kSuspect,
  kMoved,
  kUndecided,
  kOtherGpu,
  kNotMeasured
};

// In JSON and metrics.
template <>
inline constexpr auto kEnumNames<NodeVerdict> =
    std::to_array<EnumName<NodeVerdict>>({{NodeVerdict::kSame, "same"},
                                          {NodeVerdict::kBetter, "better"},
                                          {NodeVerdict::kVersion, "version"},
                                          {NodeVerdict::kSuspect, "suspect"},
                                          {NodeVerdict::kMoved, "moved"},
                                          {NodeVerdict::kUndecided, "undecided"},
                                          {NodeVerdict::kOtherGpu, "other_gpu"},
                                          {NodeVerdict::kNotMeasured, "not_measured"}});

// "hardware suspect", "worse after a version change", ...
std::string_view in_words(NodeVerdict verdict);
// Whether the verdict is a regression: exit code 1.
bool is_regression(NodeVerdict verdict);

struct BenchedNode {
  std::string node, type;
  std::optional<BenchFile> file;
  std::string problem;  // why there is no file
};

struct JudgedNode {
  std::string node, type;
  NodeVerdict verdict = NodeVerdict::kSame;
  std::string moved;               // "context: 278.0 → 578.0 MiB", or why there is no verdict
  std::string blamed;              // "driver 550.54 → 570.12"; empty if no version changed
  int siblings = 0;                // nodes that it was compared with
  std::vector<StackChange> stack;  // since the baseline
};

// The rows of several nodes as one file, so that medians and agreement are those of the type. At
// most 16 files are used, evenly chosen. `files` must not be empty.
BenchFile pooled(const std::vector<const BenchFile*>& files);

// `baselines` by type. In the order of `nodes`.
std::vector<JudgedNode> judge_nodes(const std::vector<BenchedNode>& nodes,
                                    const std::map<std::string, BenchFile>& baselines,
                                    const CompareOptions& options);

}  // namespace memfathom
