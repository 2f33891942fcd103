// The fitted table: decision trees that say, per architecture, direction, type and layout, which
// form a workspace takes.
#pragma once

#include <cstdint>
#include <span>

#include "core/workspace.h"
#include "kernels/workspace/convolution_sizes.h"

namespace memfathom {

// A node in preorder: its left child (feature <= threshold) follows it, its right child is at
// `right`. A leaf has feature -1, and `right` is its form.
struct FittedNode {
  std::int8_t feature;
  float threshold;
  std::int16_t right;
};

struct FittedTree {
  std::int16_t compute;  // 80 for sm_80
  ConvolutionKind kind;  // as cuDNN sees it
  bool is_16bit;
  bool channels_last;
  std::int32_t first_node;
  // On queries that were held out: errors in percent of input + output + weight.
  float median_error;
  float mean_error;
  float p90_error;
};

std::span<const FittedTree> fitted_trees();
std::span<const FittedNode> fitted_nodes();
std::span<const WorkspaceForm> fitted_forms();

struct FittedProvenance {
  const char* cudnn_version;
  int training_queries;
  int held_out_queries;
};
FittedProvenance fitted_provenance();

}  // namespace memfathom
