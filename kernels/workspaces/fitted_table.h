// The fitted tables: decision trees that say, per architecture, direction, type and layout, which
// form a workspace takes. They are data (kernels/workspaces/tables/), embedded in the binary and
// parsed when first needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/embedded_file.h"
#include "core/workspace.h"
#include "kernels/workspaces/convolution_sizes.h"

namespace memfathom {

// A node in preorder: its left child (feature <= threshold) follows it, its right child is at
// `right`. A leaf has feature -1, and `right` is the position of its form in kWorkspaceForms.
struct FittedNode {
  std::int8_t feature;
  float threshold;
  std::int16_t right;

  bool operator==(const FittedNode&) const = default;
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

  bool operator==(const FittedTree&) const = default;
};

struct FittedProvenance {
  std::string cudnn_version;  // "9.19.0"
  int training_queries = 0;
  int held_out_queries = 0;

  bool operator==(const FittedProvenance&) const = default;
};

struct FittedTable {
  std::vector<FittedTree> trees;
  std::vector<FittedNode> nodes;
  FittedProvenance provenance;

  bool operator==(const FittedTable&) const = default;
};

// The versions of cuDNN with a table: the oldest that plans without a device, for the A100 alone
// (the GPU whose published measurements are older), and the current one.
inline constexpr std::string_view kOldestFittedCudnn = "9.8";
inline constexpr std::string_view kCurrentFittedCudnn = "9.19";

// The table of a version, parsed at the first call for it; may be called from several threads.
// Throws Error(kInternal) for a version without one.
const FittedTable& fitted_table(std::string_view cudnn_version);
bool has_fitted_table(std::string_view cudnn_version);

// The format of the tables. Parsing throws Error(kInput) that names `file` and the line.
FittedTable parse_fitted_table(std::string_view text, std::string_view file);
std::string to_text(const FittedTable& table);

// The embedded files, "cudnn-9.19.txt".
std::span<const EmbeddedFile> fitted_table_files();

}  // namespace memfathom
