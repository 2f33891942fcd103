// WorkspaceCache: what a library answered when it was asked for a workspace, kept between runs in
// the user's cache.
//
// The planner of cuDNN takes milliseconds a question, and an estimate asks hundreds. A cache is
// never a reason to fail: what cannot be read is asked again, what cannot be written is forgotten.
// May be called from several threads.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/bytes.h"

namespace memfathom {

// The key of an answer: the canonical text of the query (core/workspace.h), for which architecture,
// by which version.
std::string workspace_cache_key(const std::string& query, const std::string& architecture,
                                const std::string& library_version);

class WorkspaceCache {
 public:
  explicit WorkspaceCache(const std::filesystem::path& path);
  ~WorkspaceCache();  // writes what was added
  WorkspaceCache(const WorkspaceCache&) = delete;
  WorkspaceCache& operator=(const WorkspaceCache&) = delete;

  std::optional<Bytes> find(const std::string& key) const;
  void insert(const std::string& key, Bytes bytes);

  // Why nothing is kept on the disk, for the log; empty when all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  struct File;
  void write_pending();

  mutable std::mutex mutex_;
  std::unique_ptr<File> file_;            // none when the file cannot be used
  std::map<std::string, Bytes> pending_;  // not yet in the file
  std::string trouble_;
};

}  // namespace memfathom
