#include "core/key_recorder.h"

namespace memfathom {
namespace {

thread_local KeyRecorder* innermost = nullptr;

}  // namespace

KeyRecorder::KeyRecorder() : outer_(innermost) { innermost = this; }

KeyRecorder::~KeyRecorder() {
  if (outer_ != nullptr) outer_->paths_.merge(paths_);
  innermost = outer_;
}

void KeyRecorder::note(std::string_view parent_path, std::string_view key) {
  if (innermost == nullptr) return;
  std::string path(parent_path);
  if (!path.empty()) path.push_back('.');
  innermost->paths_.insert(path.append(key));
}

std::vector<std::string> KeyRecorder::unread_keys(const Node& map) const {
  std::vector<std::string> unread;
  for (const Node& entry : map.entries()) {
    if (!paths_.contains(entry.path())) {
      unread.push_back(entry.path());
    } else if (entry.is_map()) {
      const std::vector<std::string> inside = unread_keys(entry);
      unread.insert(unread.end(), inside.begin(), inside.end());
    }
  }
  return unread;
}

}  // namespace memfathom
