// A library to preload (LD_PRELOAD) that lets the n-th call of a function fail, counted in each
// process from the start of its main():
//
//   MEMFATHOM_FAULT=write:3     the third write() fails, with ENOSPC; "write:3+" all from the third
//   MEMFATHOM_FAULT_COUNTS=F    appends "NAME COUNT" lines to F when the process ends
//
// Calls before main() are left alone: they belong to the loader and to constructors of other
// people's libraries. MEMFATHOM_FAULT_WALK (walk.h) tries every n within one run.
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

#include "walk.h"

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
bool walks = false;
bool tried = false;  // in a copy

// In the copy the wish is this very call.
bool walk_fails(Index which, long number) {
  active = false;
  const bool is_copy = faults::fails_in_a_copy(number);
  active = true;
  if (!is_copy) return false;
  tried = true;
  wanted = number;
  errno = calls[which].error;
  return true;
}

bool fails(Index which) {
  if (!active.load(std::memory_order_relaxed)) return false;
  const long number = ++calls[which].count;
  if (walks && !tried) return which == chosen && walk_fails(which, number);
  if (which != chosen || (persistent ? number < wanted : number != wanted)) return false;
  errno = calls[which].error;
  return true;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int index_of(const char* name, std::size_t length) {
  for (int i = 0; i < kCalls; ++i) {
    if (std::strncmp(name, calls[i].name, length) == 0 && calls[i].name[length] == '\0') return i;
  }
  return -1;
}

void read_wish() {
  const faults::Walk walk = faults::read_walk();
  if (walk.call != nullptr) {
    chosen = index_of(walk.call, walk.call_length);
    persistent = walk.persistent;
    walks = true;
    return;
  }
  const char* const wish = std::getenv("MEMFATHOM_FAULT");
  if (wish == nullptr) return;
  const char* const colon = std::strchr(wish, ':');
  if (colon == nullptr) return;
  chosen = index_of(wish, static_cast<std::size_t>(colon - wish));
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

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  program_main = main;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return real<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

// Those of the library that is loaded next: the C library, or LeakSanitizer.
void* malloc(std::size_t size) noexcept {
  static const auto next = real<void* (*)(std::size_t)>("malloc");
  return fails(kMalloc) ? nullptr : next(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  static const auto next = real<void* (*)(std::size_t, std::size_t)>("calloc");
  return fails(kMalloc) ? nullptr : next(count, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  static const auto next = real<void* (*)(void*, std::size_t)>("realloc");
  return fails(kMalloc) ? nullptr : next(block, size);
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

// SQLite's mutexes know the number of the thread that holds them, which is another one in a copy.
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto next = real<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  if (tried) faults::adopt(*mutex);
  return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto next = real<int (*)(pthread_mutex_t*)>("pthread_mutex_trylock");
  if (tried) faults::adopt(*mutex);
  return next(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto next = real<int (*)(pthread_mutex_t*)>("pthread_mutex_unlock");
  if (tried) faults::adopt(*mutex);
  return next(mutex);
}

// A copy has no thread but the one that forked, so a command that walks starts no other.
int get_nprocs() noexcept { return walks ? 1 : real<int (*)()>("get_nprocs")(); }

pid_t fork() noexcept { return fails(kFork) ? -1 : real<pid_t (*)()>("fork")(); }
pid_t vfork() noexcept { return fork(); }

int pipe(int* ends) noexcept {
  return fails(kPipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, 0));
}
int pipe2(int* ends, int flags) noexcept {
  return fails(kPipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, flags));
}

}  // extern "C"
