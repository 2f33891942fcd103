#include "profiler/recording_workspaces.h"

#include "core/workspace_features.h"

namespace memfathom {

WorkspaceSize RecordingWorkspaces::convolution(const ConvolutionQuery& query) const {
  const WorkspaceSize answer = inner_.convolution(query);
  keep({convolutions_, operation_of(query), to_string(query), answer.bytes});
  return answer;
}

WorkspaceSize RecordingWorkspaces::fft(const FftQuery& query) const {
  const WorkspaceSize answer = inner_.fft(query);
  keep({transforms_, operation_of(query), to_string(query), answer.bytes});
  return answer;
}

// A device that runs attention with its own kernels queries no library: there is nothing to record.
WorkspaceSize RecordingWorkspaces::attention(const AttentionQuery& query) const {
  const WorkspaceSize answer = inner_.attention(query);
  if (answer.source != Source::kDefault) {
    keep({convolutions_, query.backward ? "attention backward" : "attention forward",
          to_string(query), answer.bytes});
  }
  return answer;
}

void RecordingWorkspaces::keep(const WorkspaceRequest& request) const {
  const std::lock_guard lock(mutex_);
  requests_.try_emplace(request.shape, request);
}

std::vector<WorkspaceRequest> RecordingWorkspaces::requests() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkspaceRequest> all;
  all.reserve(requests_.size());
  for (const auto& [shape, request] : requests_) all.push_back(request);
  return all;
}

}  // namespace memfathom
