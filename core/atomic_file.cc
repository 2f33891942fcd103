#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

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
  const std::string temporary = fmt::format("{}.{}.tmp", target.string(), ::getpid());
  const FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) refuse(path, errno);
  int failure = write_all(file, text);
  if (failure == 0 && ::fsync(file.get()) != 0) failure = errno;
  if (failure == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) failure = errno;
  if (failure != 0) {
    ::unlink(temporary.c_str());
    refuse(path, failure);
  }
}

}  // namespace memfathom
