#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "core/file_descriptor.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, int reason) {
  throw Error(
      ErrorKind::kEnvironment,
      fmt::format("{}: cannot be written: {}; choose another place", path, std::strerror(reason)));
}

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

// A new file that nobody could have prepared: its name is random, and neither a file nor a link of
// that name is opened. Returns -1 and sets errno on failure.
int open_temporary(const fs::path& target, std::string& name) {
  std::random_device random;
  int file = -1;
  for (int attempt = 0; attempt < 16; ++attempt) {
    name = (folder_of(target) / fmt::format(".memfathom-{:08x}{:08x}.tmp", random(), random()))
               .string();
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) break;
  }
  return file;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::path target = fs::exists(path, ignored) ? fs::canonical(path, ignored) : fs::path(path);
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) {
    const FileDescriptor direct(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    const int failure = direct.get() < 0 ? errno : write_all(direct, text);
    if (failure != 0) refuse(path, failure);
    return;
  }
  struct stat before {};
  const bool replaces = ::stat(target.c_str(), &before) == 0;
  std::string temporary;
  const FileDescriptor file(open_temporary(target, temporary));
  if (file.get() < 0) refuse(path, errno);
  int failure = write_all(file, text);
  if (failure == 0 && replaces && ::fchmod(file.get(), before.st_mode & 0777) != 0) failure = errno;
  if (failure == 0 && ::fsync(file.get()) != 0) failure = errno;
  if (failure == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) failure = errno;
  if (failure != 0) {
    ::unlink(temporary.c_str());
    refuse(path, failure);
  }
  // Without this a power loss could undo the rename. Not every file system allows it.
  const FileDescriptor folder(
      ::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
}

}  // namespace memfathom
