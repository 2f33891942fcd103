// The fitted tables: decision trees that say, per architecture, direction, type and layout, which
// form a workspace takes.
#pragma once

#include <cstdint>
#include <span>

#include "core/workspace.h"
#include "kernels/workspaces/convolution_sizes.h"

namespace memfathom {

// A node in preorder: its left child (feature <= threshold) follows it, its right child is at
// `right`. A leaf has feature -1, and `right` is the position of its form in kWorkspaceForms.
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

struct FittedProvenance {
  const char* cudnn_version;
  int training_queries;
  int held_out_queries;
};

struct FittedTable {
  std::span<const FittedTree> trees;
  std::span<const FittedNode> nodes;
  FittedProvenance provenance;
};

// The oldest version that plans without a device, for the A100 alone (the GPU whose published
// measurements are of before), and the one of today.
const FittedTable& fitted_table_cudnn_9_8();
const FittedTable& fitted_table_cudnn_9_19();

}  // namespace memfathom
