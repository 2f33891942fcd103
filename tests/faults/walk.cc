#include "walk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unordered_set>

namespace faults {
namespace {

namespace fs = std::filesystem;

// What a copy that could not be prepared ends with: no command's exit code.
constexpr int kBroken = 99;

// Instead of a status: there was no copy, since a child of the process would have been shared with
// it.
constexpr int kShared = -2;

int control = -1;
int patience = 120;
long first = 1;
bool by_stack = false;
pid_t walking_thread = 0;
pid_t copied_thread = 0;
char folder[4096];
char copy_folder[4096];

const char* take(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return nullptr;
  const char* const kept = strdup(value);
  unsetenv(name);
  return kept;
}

// The descriptors of files below the folder, opened again in the copy, at the same place.
void reopen_files() {
  const std::size_t length = std::strlen(folder);
  for (int file = 0; file < 256; ++file) {
    char link[64];
    char path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) continue;
    path[size] = '\0';
    if (std::strncmp(path, folder, length) != 0 || path[length] != '/') continue;
    const int status = fcntl(file, F_GETFL);
    const int flags = fcntl(file, F_GETFD);
    const long again =
        syscall(SYS_openat, AT_FDCWD, path, status & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW));
    if (again < 0) continue;  // a file without a name
    lseek(static_cast<int>(again), lseek(file, 0, SEEK_CUR), SEEK_SET);
    dup3(static_cast<int>(again), file, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
    syscall(SYS_close, again);
  }
}

// Files of its own for the copy, under the same names.
bool isolate() {
  std::error_code failed;
  fs::remove_all(copy_folder, failed);
  fs::copy(folder, copy_folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks,
           failed);
  if (failed) return false;
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return false;
  if (mount(copy_folder, folder, nullptr, MS_BIND, nullptr) != 0) return false;
  if (chdir(here) != 0) return false;
  reopen_files();
  return true;
}

struct Frames {
  std::uint64_t hash = 1469598103934665603ULL;
  int depth = 0;
};

bool is_new_stack() {
  static auto* const seen = new std::unordered_set<std::uint64_t>;
  Frames frames;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* into) {
        auto& found = *static_cast<Frames*>(into);
        found.hash = (found.hash ^ _Unwind_GetIP(context)) * 1099511628211ULL;
        return ++found.depth < 64 ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &frames);
  return seen->insert(frames.hash).second;
}

// Its commands would be shared with the copy.
bool has_children() {
  siginfo_t unused{};
  return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

int wait_for(pid_t copy) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, copy, 0));
  pollfd ended{handle, POLLIN, 0};
  int got = 0;
  while ((got = poll(&ended, 1, patience * 1000)) < 0 && errno == EINTR) continue;
  if (got == 0) kill(-copy, SIGKILL);
  int status = 0;
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR) continue;
  syscall(SYS_close, handle);
  return got == 0 ? -1 : status;
}

void tell(long n, int status, bool left) {
  char line[64];
  const int size = std::snprintf(line, sizeof line, "%ld %d %d\n", n, status, left ? 1 : 0);
  if (syscall(SYS_write, control, line, size) != size) _exit(kBroken);
  char answer = 0;
  if (syscall(SYS_read, control, &answer, 1) != 1) _exit(kBroken);
}

}  // namespace

Walk read_walk() {
  Walk walk;
  walk.call = take("MEMFATHOM_FAULT_WALK");
  const char* const where = take("MEMFATHOM_FAULT_FOLDER");
  const char* const descriptor = take("MEMFATHOM_FAULT_CONTROL");
  if (const char* const seconds = take("MEMFATHOM_FAULT_PATIENCE")) patience = std::atoi(seconds);
  if (const char* const from = take("MEMFATHOM_FAULT_FROM")) first = std::atol(from);
  if (walk.call == nullptr || where == nullptr || descriptor == nullptr) return {};
  control = std::atoi(descriptor);
  fcntl(control, F_SETFD, FD_CLOEXEC);
  std::snprintf(folder, sizeof folder, "%s", where);
  std::snprintf(copy_folder, sizeof copy_folder, "%s.copy", where);
  walk.call_length = static_cast<unsigned>(std::strcspn(walk.call, "+/"));
  walk.persistent = std::strchr(walk.call, '+') != nullptr;
  by_stack = std::strstr(walk.call, "/stacks") != nullptr;
  return walk;
}

bool fails_in_a_copy(long n) {
  if (n < first) return false;
  if (by_stack && !is_new_stack()) return false;
  const int before = errno;
  if (has_children()) {
    tell(n, kShared, false);
    errno = before;
    return false;
  }
  static const auto real_fork = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"));
  walking_thread = gettid();
  const pid_t copy = real_fork();
  if (copy == 0) {
    copied_thread = gettid();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    syscall(SYS_close, control);
    if (!isolate()) _exit(kBroken);
    return true;
  }
  if (copy < 0) _exit(kBroken);
  setpgid(copy, copy);  // whoever comes first
  const int status = wait_for(copy);
  tell(n, status, kill(-copy, SIGKILL) == 0);
  errno = before;
  return false;
}

void adopt(pthread_mutex_t& mutex) {
  if (mutex.__data.__owner == walking_thread) mutex.__data.__owner = copied_thread;
}

}  // namespace faults
