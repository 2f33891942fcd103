// WorkspaceStore: answers of a library, kept in the user's cache directory so that the next program
// need not load it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memfathom {

// One answer: the canonical text of a query and the bytes, or kRefused when the library would not
// plan it.
struct CachedWorkspace {
  static constexpr std::int64_t kRefused = -1;
  std::string query;
  std::int64_t bytes = 0;
};

// Two text files of one line an answer, "query<TAB>bytes<TAB>checksum": `<stem>.log`, to which
// answers are appended, and
// `<stem>.sorted`, into which a log that has grown is merged. The sorted file is mapped and
// searched by halves, so opening costs the log only. A line whose checksum is wrong does not exist;
// losing the files costs only time. Several processes may read and append at once. A file system
// that refuses to be written makes the store memory only.
class WorkspaceStore {
 public:
  explicit WorkspaceStore(std::filesystem::path stem);
  ~WorkspaceStore();
  WorkspaceStore(const WorkspaceStore&) = delete;
  WorkspaceStore& operator=(const WorkspaceStore&) = delete;

  std::optional<std::int64_t> find(std::string_view query) const;

  // Remembers the answers and appends them to the log.
  void append(std::span<const CachedWorkspace> answers);

 private:
  void merge_log();
  void map_sorted();
  void unmap_sorted();

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::filesystem::path stem_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> recent_;
  const char* sorted_ = nullptr;
  std::size_t sorted_size_ = 0;
};

// $XDG_CACHE_HOME/memfathom, else $HOME/.cache/memfathom, else empty: nothing is kept.
std::filesystem::path default_cache_directory();

}  // namespace memfathom
