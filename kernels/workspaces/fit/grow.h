// Growing a decision tree whose leaves are workspace forms: each split lowers the sum of relative
// errors the most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/workspaces/convolution_sizes.h"
#include "kernels/workspaces/fitted_table.h"

namespace memfathom {

struct TreeTrainingRow {
  ConvolutionFeatures features;
  ConvolutionSizes sizes;
  std::int64_t bytes;  // what cuDNN wants
};

// |predicted - wanted| as a share of input + output + weight; below 1 MiB in all, of 1 MiB: small
// ones hardly matter.
double relative_error(std::int64_t predicted, const TreeTrainingRow& row);

// The tree's nodes in preorder, FittedNode::right relative to the tree's first node.
std::vector<FittedNode> grow_tree(std::span<const TreeTrainingRow> rows,
                                  std::span<const WorkspaceForm> forms, int leaves);

}  // namespace memfathom
