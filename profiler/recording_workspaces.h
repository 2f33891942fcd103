// RecordingWorkspaces: forwards to another model and records every distinct reply, for profiles.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/workspace.h"

namespace memfathom {

class RecordingWorkspaces final : public WorkspaceModel {
 public:
  // `inner` must outlive it. The records contain the libraries' names.
  RecordingWorkspaces(const WorkspaceModel& inner, Library convolutions, Library transforms)
      : inner_(inner), convolutions_(convolutions), transforms_(transforms) {}

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery& query) const override;

  std::vector<WorkspaceRequest> requests() const;  // ordered by shape

 private:
  void keep(const WorkspaceRequest& request) const;

  const WorkspaceModel& inner_;
  Library convolutions_;
  Library transforms_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, WorkspaceRequest> requests_;  // by shape
};

}  // namespace memfathom
