// FittedWorkspaceModel: workspaces without the library, from a table fitted to its answers. The
// fallback where cuDNN is absent.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "core/workspace.h"
#include "kernels/workspaces/fitted_table.h"

namespace memfathom {

class FittedWorkspaceModel : public WorkspaceModel {
 public:
  // By architecture or GPU as describe_gpu() takes them; one that was not fitted is answered by the
  // next older.
  // The table is read at the first convolution, so that jobs without one do not pay for it. Throws
  // Error(kInternal) for a version without a table.
  explicit FittedWorkspaceModel(std::string_view gpu,
                                std::string_view cudnn_version = kCurrentFittedCudnn);

  // Source kFitted; kExact where PyTorch has kernels of its own, which want nothing.
  WorkspaceSize convolution(const ConvolutionQuery& query) const override;

  // cuFFT cannot be asked without a device: half-precision aside, its work area is about the
  // transformed data. Source kDefault.
  WorkspaceSize fft(const FftQuery& query) const override;

  // PyTorch's own kernels run it, without a library. Source kDefault.
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

 private:
  const FittedTable& table() const;

  int compute_;
  std::string cudnn_version_;
  mutable std::once_flag is_read_;
  mutable const FittedTable* table_ = nullptr;
};

// The tree for a query, as cuDNN sees it, on compute capability `compute`; null when the table is
// empty.
const FittedTree* tree_for(const FittedTable& table, const ConvolutionQuery& query, int compute);

// The form at the leaf the features lead to.
WorkspaceForm form_at(const FittedTable& table, const FittedTree& tree,
                      const ConvolutionFeatures& features);

}  // namespace memfathom
