#include "core/file_descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace memfathom {

void FileDescriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

int write_all(const FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace memfathom
