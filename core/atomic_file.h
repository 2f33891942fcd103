// atomic_file: writes a file completely or not at all.
#pragma once

#include <string>
#include <string_view>

namespace memfathom {

// Writes `text` to `path` through a temporary file in the same directory, so that readers see the
// old or the new content, even after a crash. An existing file keeps its mode. Follows symbolic
// links; writes to devices and pipes
// directly. Throws Error(kEnvironment) with the path and the reason.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace memfathom
