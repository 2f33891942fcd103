// TemporaryDirectory: a fresh directory that a test owns and that goes with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace memfathom {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path =
        (std::filesystem::temp_directory_path() / "memfathom-workspace-XXXXXX").string();
    path_ = mkdtemp(path.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace memfathom
