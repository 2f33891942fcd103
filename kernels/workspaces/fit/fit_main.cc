// fit_cudnn_workspaces: asks cuDNN about random convolutions and writes
// kernels/workspaces/tables/cudnn-<version>.txt.
//
// Usage: fit_cudnn_workspaces OUT [QUERIES_PER_TREE [LEAVES [GPU]]]. A fifth of the queries is held
// out for the errors that are stored with each tree. scripts/fit-cudnn-workspaces builds and runs
// it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <vector>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cudnn_planner.h"
#include "kernels/workspaces/fit/design.h"
#include "kernels/workspaces/fit/grow.h"
#include "kernels/workspaces/fitted_table.h"

namespace memfathom {
namespace {

struct Fitted {
  FittedTree tree;
  std::vector<FittedNode> nodes;
};

WorkspaceForm form_of(std::span<const FittedNode> nodes, std::span<const WorkspaceForm> forms,
                      const ConvolutionFeatures& features) {
  std::size_t at = 0;
  while (nodes[at].feature >= 0) {
    at = features[static_cast<std::size_t>(nodes[at].feature)] <= nodes[at].threshold
             ? at + 1
             : static_cast<std::size_t>(nodes[at].right);
  }
  return forms[static_cast<std::size_t>(nodes[at].right)];
}

std::vector<TreeTrainingRow> ask(CudnnPlanner& planner,
                                 const std::vector<ConvolutionQuery>& queries) {
  const std::vector<std::optional<Bytes>> answers = planner.ask(queries);
  std::vector<TreeTrainingRow> rows;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (!answers[i]) continue;
    const std::optional<ConvolutionProfile> measured = measure(queries[i]);
    rows.push_back({measured->features, measured->sizes, answers[i]->count()});
  }
  return rows;
}

Fitted fit(CudnnPlanner& planner, const GpuDescription& gpu, const DesignClass& of, int count,
           int leaves, std::span<const WorkspaceForm> forms) {
  // 16-bit types are planned alike; the seed depends on nothing but the class, so that
  // architectures see the same queries.
  std::mt19937_64 random(20261116 + static_cast<std::uint64_t>(of.kind) * 8 +
                         static_cast<std::uint64_t>(of.dtype) * 2 + of.channels_last);
  std::vector<ConvolutionQuery> queries;
  for (int i = 0; i < count; ++i) queries.push_back(draw_convolution(random, of));
  const std::vector<TreeTrainingRow> rows = ask(planner, queries);
  const std::size_t kept = rows.size() * 4 / 5;
  Fitted fitted;
  fitted.nodes = grow_tree(std::span(rows).first(kept), forms, leaves);
  std::vector<double> errors;
  for (const TreeTrainingRow& row : std::span(rows).subspan(kept)) {
    errors.push_back(
        100 * relative_error(bytes_of(form_of(fitted.nodes, forms, row.features), row.sizes), row));
  }
  std::sort(errors.begin(), errors.end());
  double sum = 0;
  for (const double error : errors) sum += error;
  fitted.tree = {static_cast<std::int16_t>(gpu.compute),
                 of.kind,
                 is_16bit_float(of.dtype),
                 of.channels_last,
                 0,
                 static_cast<float>(errors[errors.size() / 2]),
                 static_cast<float>(sum / static_cast<double>(errors.size())),
                 static_cast<float>(errors[errors.size() * 9 / 10])};
  fmt::print(
      "{} {} {} {}: {} rows, {} nodes, held-out error median {:.2f} % mean {:.2f} % p90 {:.1f} %\n",
      architecture_of(gpu), to_string(of.kind), to_string(of.dtype),
      of.channels_last ? "nhwc" : "nchw", rows.size(), fitted.nodes.size(),
      fitted.tree.median_error, fitted.tree.mean_error, fitted.tree.p90_error);
  std::fflush(stdout);
  return fitted;
}

FittedTable table_of(const std::vector<Fitted>& all, const std::string& version, int count) {
  const int trees = static_cast<int>(all.size());
  FittedTable table;
  table.provenance = {version, trees * (count * 4 / 5), trees * (count - count * 4 / 5)};
  for (const Fitted& fitted : all) {
    table.trees.push_back(fitted.tree);
    table.trees.back().first_node = static_cast<std::int32_t>(table.nodes.size());
    table.nodes.insert(table.nodes.end(), fitted.nodes.begin(), fitted.nodes.end());
  }
  return table;
}

int run(const std::string& path, int count, int leaves, const std::string& only) {
  std::vector<Fitted> all;
  std::string version;
  std::set<int> seen;
  for (const GpuDescription& gpu : known_gpus()) {
    if ((!only.empty() && only != gpu.key) || !seen.insert(gpu.compute).second) continue;
    CudnnPlanner planner({.gpu = gpu.key, .program = {}, .library_directory = {}, .processes = 2});
    version = planner.cudnn_version();
    for (const DType dtype : {DType::kFp32, DType::kFp16}) {
      for (const bool channels_last : {false, true}) {
        for (const ConvolutionKind kind :
             {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
              ConvolutionKind::kWeightGradient}) {
          all.push_back(
              fit(planner, gpu, {kind, dtype, channels_last}, count, leaves, kWorkspaceForms));
        }
      }
    }
  }
  std::ofstream out(path);
  out << to_text(table_of(all, version, count));
  if (!out.flush()) throw Error(ErrorKind::kEnvironment, fmt::format("{} cannot be written", path));
  return 0;
}

}  // namespace
}  // namespace memfathom

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: fit_cudnn_workspaces OUT [QUERIES_PER_TREE [LEAVES [GPU]]]\n";
    return 2;
  }
  try {
    return memfathom::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 12000,
                          argc > 3 ? std::atoi(argv[3]) : 40, argc > 4 ? argv[4] : "");
  } catch (const memfathom::Error& error) {
    std::cerr << "fit_cudnn_workspaces: " << error.what() << '\n';
    return 4;
  }
}
