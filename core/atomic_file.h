// Atomic files: a file appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace memfathom {

// Writes `text` to `path` by way of a temporary file beside it, so that readers and a crash see the
// old content or the new one. A symbolic link keeps pointing where it did; a device or a pipe is
// written to directly. Throws Error(kEnvironment) naming the path and the reason.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace memfathom
