// KeyRecorder: records which document keys this thread looks up during its lifetime, so that a
// reader can report the keys it did not use:
//
//   KeyRecorder recorder;
//   make_from_family(builder, config, settings, assumptions);
//   for (const std::string& path : recorder.unread_keys(config)) ...
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"

namespace memfathom {

class KeyRecorder {
 public:
  KeyRecorder();
  ~KeyRecorder();  // destroy in reverse order; an outer recorder also records an inner one's keys
  KeyRecorder(const KeyRecorder&) = delete;
  KeyRecorder& operator=(const KeyRecorder&) = delete;

  // Paths of the entries of `map`, and of the maps in it that were read, that were never looked up,
  // in file order. Keys are identified by path, so `map` may be a copy.
  std::vector<std::string> unread_keys(const Node& map) const;

  // Paths of all keys that were looked up, present in the document or not.
  const std::set<std::string>& looked_up() const { return paths_; }

  // Called by Node for each key that is looked up, present or not.
  static void note(std::string_view parent_path, std::string_view key);

 private:
  std::set<std::string> paths_;
  KeyRecorder* outer_;
};

}  // namespace memfathom
