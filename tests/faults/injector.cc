// A library to preload (LD_PRELOAD) that lets the n-th call of a function fail, counted in each
// process from the start of its main():
//
//   MEMFATHOM_FAULT=write:3     the third write() fails, with ENOSPC; "write:3+" all from the third
//   MEMFATHOM_FAULT_COUNTS=F    appends "NAME COUNT" lines to F when the process ends
//
// Calls before main() are left alone: they belong to the loader and to constructors of other
// people's libraries.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Call {
  const char* name;
  int error;
  std::atomic<long> count{0};
};

// Their order is that of the enum below.
enum Index { kMalloc, kOpen, kRead, kWrite, kFsync, kMmap, kFork, kPipe, kCalls };
Call calls[kCalls] = {{"malloc", ENOMEM}, {"open", EMFILE}, {"read", EIO},    {"write", ENOSPC},
                      {"fsync", EIO},     {"mmap", ENOMEM}, {"fork", EAGAIN}, {"pipe", EMFILE}};

std::atomic<bool> active{false};
int chosen = -1;
long wanted = 0;
bool persistent = false;

bool fails(Index which) {
  if (!active.load(std::memory_order_relaxed)) return false;
  const long number = ++calls[which].count;
  if (which != chosen || (persistent ? number < wanted : number != wanted)) return false;
  errno = calls[which].error;
  return true;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void read_wish() {
  const char* const wish = std::getenv("MEMFATHOM_FAULT");
  if (wish == nullptr) return;
  const char* const colon = std::strchr(wish, ':');
  if (colon == nullptr) return;
  for (int i = 0; i < kCalls; ++i) {
    if (std::strncmp(wish, calls[i].name, static_cast<std::size_t>(colon - wish)) == 0 &&
        calls[i].name[colon - wish] == '\0')
      chosen = i;
  }
  char* end = nullptr;
  wanted = std::strtol(colon + 1, &end, 10);
  persistent = *end == '+';
}

void write_counts() {
  active = false;
  const char* const path = std::getenv("MEMFATHOM_FAULT_COUNTS");
  if (path == nullptr) return;
  const long file =
      syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (const Call& call : calls) {
    char line[64];
    const int size = std::snprintf(line, sizeof line, "%s %ld\n", call.name, call.count.load());
    syscall(SYS_write, file, line, size);
  }
  syscall(SYS_close, file);
}

using Main = int (*)(int, char**, char**);
Main program_main;

int counted_main(int argc, char** argv, char** environment) {
  read_wish();
  std::atexit(write_counts);
  active = true;
  return program_main(argc, argv, environment);
}

mode_t mode_of(int flags, std::va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? static_cast<mode_t>(va_arg(arguments, int)) : mode_t{0};
}

}  // namespace

extern "C" {

// The C library's own, under the names by which it exports them.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  program_main = main;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return real<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

void* malloc(std::size_t size) noexcept { return fails(kMalloc) ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) noexcept {
  return fails(kMalloc) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  return fails(kMalloc) ? nullptr : __libc_realloc(block, size);
}

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails(kOpen) ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails(kOpen) ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
FILE* fopen64(const char* path, const char* mode) {
  return fails(kOpen) ? nullptr : real<FILE* (*)(const char*, const char*)>("fopen64")(path, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails(kOpen) ? nullptr : real<FILE* (*)(const char*, const char*)>("fopen")(path, mode);
}

ssize_t read(int file, void* data, std::size_t size) {
  return fails(kRead) ? -1 : syscall(SYS_read, file, data, size);
}
ssize_t pread64(int file, void* data, std::size_t size, off64_t offset) {
  return fails(kRead) ? -1 : syscall(SYS_pread64, file, data, size, offset);
}
ssize_t write(int file, const void* data, std::size_t size) {
  return fails(kWrite) ? -1 : syscall(SYS_write, file, data, size);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  return fails(kWrite) ? -1 : syscall(SYS_writev, file, parts, count);
}
ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t offset) {
  return fails(kWrite) ? -1 : syscall(SYS_pwrite64, file, data, size, offset);
}
int fsync(int file) { return fails(kFsync) ? -1 : static_cast<int>(syscall(SYS_fsync, file)); }
int fdatasync(int file) {
  return fails(kFsync) ? -1 : static_cast<int>(syscall(SYS_fdatasync, file));
}

void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (fails(kMmap)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
void* mmap64(void* at, std::size_t size, int protection, int flags, int file,
             off64_t offset) noexcept {
  return mmap(at, size, protection, flags, file, offset);
}

pid_t fork() noexcept { return fails(kFork) ? -1 : real<pid_t (*)()>("fork")(); }
pid_t vfork() noexcept { return fork(); }

int pipe(int* ends) noexcept {
  return fails(kPipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, 0));
}
int pipe2(int* ends, int flags) noexcept {
  return fails(kPipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, flags));
}

}  // extern "C"
