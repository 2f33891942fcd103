#include "kernels/workspaces/fitted_workspace_model.h"

#include <fmt/format.h>

#include <optional>
#include <span>

#include "core/error.h"
#include "core/pytorch_convolution.h"
#include "kernels/workspaces/architectures.h"

namespace memfathom {
namespace {

ConvolutionKind kind_for_cudnn(const ConvolutionQuery& query) {
  if (!query.transposed || query.kind == ConvolutionKind::kWeightGradient) return query.kind;
  return query.kind == ConvolutionKind::kForward ? ConvolutionKind::kDataGradient
                                                 : ConvolutionKind::kForward;
}

}  // namespace

const FittedTree* tree_for(const FittedTable& table, const ConvolutionQuery& query, int compute) {
  const ConvolutionKind kind = kind_for_cudnn(query);
  const bool channels_last = query.channels_last && query.input.rank() > 3;
  const FittedTree* best = nullptr;
  for (const FittedTree& tree : table.trees) {
    if (tree.kind != kind || tree.is_16bit != is_16bit_float(query.dtype) ||
        tree.channels_last != channels_last)
      continue;
    // The newest architecture not newer than ours; an older one than all fitted takes the oldest.
    const bool better =
        best == nullptr ||
        (tree.compute <= compute && (tree.compute > best->compute || best->compute > compute));
    if (better) best = &tree;
  }
  return best;
}

WorkspaceForm form_at(const FittedTable& table, const FittedTree& tree,
                      const ConvolutionFeatures& features) {
  const std::span<const FittedNode> nodes =
      std::span(table.nodes).subspan(static_cast<std::size_t>(tree.first_node));
  std::size_t at = 0;
  while (nodes[at].feature >= 0) {
    const bool left = features[static_cast<std::size_t>(nodes[at].feature)] <= nodes[at].threshold;
    at = left ? at + 1 : static_cast<std::size_t>(nodes[at].right);
  }
  return kWorkspaceForms[static_cast<std::size_t>(nodes[at].right)];
}

FittedWorkspaceModel::FittedWorkspaceModel(std::string_view gpu, std::string_view cudnn_version)
    : compute_(describe_gpu(gpu).compute), cudnn_version_(cudnn_version) {
  if (!has_fitted_table(cudnn_version)) {
    throw Error(ErrorKind::kInternal,
                fmt::format("there is no fitted table of cuDNN {}", cudnn_version));
  }
}

const FittedTable& FittedWorkspaceModel::table() const {
  std::call_once(is_read_, [this] { table_ = &fitted_table(cudnn_version_); });
  return *table_;
}

WorkspaceSize FittedWorkspaceModel::convolution(const ConvolutionQuery& query) const {
  if (const std::optional<Bytes> own = pytorch_workspace_without_cudnn(query))
    return {*own, Source::kExact};
  const std::optional<ConvolutionProfile> measured = measure(query);
  const FittedTree* tree = tree_for(table(), query, compute_);
  if (!measured || tree == nullptr) return {Bytes{}, Source::kDefault};
  return {Bytes{bytes_of(form_at(table(), *tree, measured->features), measured->sizes)},
          Source::kFitted};
}

WorkspaceSize FittedWorkspaceModel::fft(const FftQuery& query) const {
  const Bytes element{query.dtype == DType::kFp64 ? 16 : query.dtype == DType::kFp32 ? 8 : 4};
  std::int64_t points = 1;
  for (int i = 0; i < query.extents.rank(); ++i) {
    const bool halved = i == query.extents.rank() - 1 && query.kind != FftKind::kComplexToComplex;
    points = (Bytes{points} * (halved ? query.extents[i] / 2 + 1 : query.extents[i])).count();
  }
  return {element * points * query.batch, Source::kDefault};
}

}  // namespace memfathom
