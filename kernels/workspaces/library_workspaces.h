// LibraryWorkspaces: the workspace models of this machine, opened on demand and kept: cuDNN in a
// child process with a cache of its answers, else the fitted tables.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/workspace_source.h"

namespace memfathom {

class LibraryWorkspaces : public WorkspaceSource {
 public:
  OpenedWorkspaces open(const WorkspaceRequirement& requirement) const override;

 private:
  struct Entry {
    std::unique_ptr<WorkspaceModel> model;
    int compute_capability = 0;
  };
  mutable std::mutex mutex_;
  mutable std::map<std::string, Entry> models_;
};

}  // namespace memfathom
