// CachedWorkspaceModel: cuDNN's workspaces from memory, else from the store, else from the planner,
// else from the fitted model.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/workspace.h"
#include "kernels/workspaces/convolution_planner.h"
#include "kernels/workspaces/fitted_table.h"
#include "kernels/workspaces/workspace_store.h"

namespace memfathom {

struct ConvolutionQueryHash {
  std::size_t operator()(const ConvolutionQuery& query) const;
};

// Answers carry their source: kExact when cuDNN said so (now or earlier) or PyTorch has a kernel of
// its own that wants nothing, else what the fallback says. Safe to call from several threads.
class CachedWorkspaceModel : public WorkspaceModel {
 public:
  // `planner` may be null: then only what is stored is known. `store` may have an empty stem:
  // nothing is kept.
  CachedWorkspaceModel(std::unique_ptr<ConvolutionPlanner> planner,
                       std::unique_ptr<WorkspaceStore> store,
                       std::unique_ptr<WorkspaceModel> fallback);
  ~CachedWorkspaceModel() override;

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery& query) const override;

  // The same answers; the planner is asked once for all that are not known.
  std::vector<WorkspaceSize> convolution_batch(std::span<const ConvolutionQuery> queries) const;

  // Why the planner could not be asked; empty while it could, or was not needed.
  std::string planner_failure() const;

 private:
  // Answers without the planner: memory, PyTorch's own kernels, the store.
  bool look_up(const ConvolutionQuery& query, WorkspaceSize& answer) const;
  void plan(std::span<const ConvolutionQuery> unknown) const;

  mutable std::mutex mutex_;
  std::unique_ptr<ConvolutionPlanner> planner_;
  std::unique_ptr<WorkspaceStore> store_;
  std::unique_ptr<WorkspaceModel> fallback_;
  mutable std::unordered_map<ConvolutionQuery, WorkspaceSize, ConvolutionQueryHash> known_;
  mutable std::string failure_;
};

struct WorkspaceModelOptions {
  std::string gpu = "sm_80";  // as for describe_gpu()
  std::filesystem::path
      cache_directory;  // default_cache_directory() for the user's; empty: nothing is kept
  std::filesystem::path library_directory;       // of another libcudnn.so.9; empty: the system's
  bool query_cudnn = true;                       // false: the fitted model alone
  std::string cudnn_table{kCurrentFittedCudnn};  // the version of the fitted model's table
  bool legacy_cudnn = false;  // cuDNN 7 or 8 under PyTorch < 2.0, on any GPU (legacy_cudnn.h)
  bool early_cudnn9 = false;  // one between that and those that can be asked (early_cudnn9.h)
};

// The model `estimate` uses: cuDNN cached, the fitted table behind it. A missing cuDNN is not an
// error; `note` then says why in one sentence. Throws Error(kInput) for a GPU that is not
// described.
struct OpenedWorkspaceModel {
  std::unique_ptr<WorkspaceModel> model;
  std::string cudnn_version;  // "9.19.0"; empty without cuDNN
  std::string note;
};
OpenedWorkspaceModel open_workspace_model(const WorkspaceModelOptions& options);

}  // namespace memfathom
