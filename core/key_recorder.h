// KeyRecorder: which keys of documents are looked up in this thread while it lives. A reader that
// runs under one can say which keys of a file it did not use:
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
  ~KeyRecorder();  // in the reverse order of construction; an outer one sees what an inner one saw
  KeyRecorder(const KeyRecorder&) = delete;
  KeyRecorder& operator=(const KeyRecorder&) = delete;

  // Paths of the entries of `map`, and of the maps in it that were read, that nobody looked up; in
  // the order of the file. Keys are known by their paths, so `map` may be a copy of what was read.
  std::vector<std::string> unread_keys(const Node& map) const;

  // Called by Node for each key that is looked up, whether it is there or not.
  static void note(std::string_view parent_path, std::string_view key);

 private:
  std::set<std::string> paths_;
  KeyRecorder* outer_;
};

}  // namespace memfathom
