#include "tests/db/power_loss/recorder.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

namespace memfathom::power_loss {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kSector = 512;

Recording* current = nullptr;

// A file on the disk: what is durable, and what was done since.
struct Inode {
  std::string durable;
  std::vector<std::variant<Write, Truncate>> pending;
};

void apply(std::string& content, std::size_t offset, std::string_view data) {
  if (content.size() < offset + data.size()) content.resize(offset + data.size(), '\0');
  content.replace(offset, data.size(), data);
}

void apply_torn(std::string& content, const Write& write, std::mt19937_64& random) {
  for (std::size_t done = 0; done < write.data.size();) {
    const std::size_t size =
        std::min(write.data.size() - done, kSector - (write.offset + done) % kSector);
    if (random() % 2 == 0)
      apply(content, write.offset + done, std::string_view(write.data).substr(done, size));
    done += size;
  }
}

// The content of an inode of which what is pending reached the disk in part.
std::string survived(const Inode& inode, Loss loss, std::mt19937_64& random) {
  std::string content = inode.durable;
  if (loss == Loss::kAll) return content;
  for (const auto& change : inode.pending) {
    const bool kept = loss == Loss::kNone || random() % 2 == 0;
    if (const auto* truncate = std::get_if<Truncate>(&change)) {
      if (kept) content.resize(truncate->size, '\0');
    } else if (loss == Loss::kTorn) {
      apply_torn(content, std::get<Write>(change), random);
    } else if (kept) {
      const auto& write = std::get<Write>(change);
      apply(content, write.offset, write.data);
    }
  }
  return content;
}

// The simulated disk: inodes, the folder's durable names, and the changes of names since.
class Disk {
 public:
  explicit Disk(const Folder& start, const std::map<std::string, int>& names) {
    for (const auto& [name, file] : names) {
      inodes_[file].durable = start.at(name);
      names_[name] = file;
    }
  }

  void apply(const Event& event) {
    if (const auto* write = std::get_if<Write>(&event)) {
      inodes_[write->file].pending.emplace_back(*write);
    } else if (const auto* truncate = std::get_if<Truncate>(&event)) {
      inodes_[truncate->file].pending.emplace_back(*truncate);
    } else if (const auto* sync = std::get_if<Sync>(&event)) {
      Inode& inode = inodes_[sync->file];
      std::mt19937_64 unused;
      inode.durable = survived(inode, Loss::kNone, unused);
      inode.pending.clear();
    } else if (std::holds_alternative<SyncFolder>(event)) {
      for (const Event& change : name_changes_) rename(names_, change);
      name_changes_.clear();
    } else if (!std::holds_alternative<Acknowledge>(event)) {
      name_changes_.push_back(event);
    }
  }

  Folder after_loss(Loss loss, std::mt19937_64& random) const {
    std::map<std::string, int> names = names_;
    // File systems keep the order of names: a beginning of the changes is there.
    std::size_t kept = 0;
    if (loss == Loss::kNone) kept = name_changes_.size();
    if (loss == Loss::kSome || loss == Loss::kTorn) kept = random() % (name_changes_.size() + 1);
    for (std::size_t i = 0; i < kept; ++i) rename(names, name_changes_[i]);
    Folder folder;
    for (const auto& [name, file] : names)
      folder[name] = survived(inodes_.count(file) > 0 ? inodes_.at(file) : Inode(), loss, random);
    return folder;
  }

 private:
  static void rename(std::map<std::string, int>& names, const Event& change) {
    if (const auto* create = std::get_if<Create>(&change)) {
      names[create->name] = create->file;
    } else if (const auto* unlink = std::get_if<Unlink>(&change)) {
      names.erase(unlink->name);
    } else if (const auto* moved = std::get_if<Rename>(&change)) {
      names[moved->to] = names[moved->from];
      names.erase(moved->from);
    }
  }

  std::map<int, Inode> inodes_;
  std::map<std::string, int> names_;
  std::vector<Event> name_changes_;
};

}  // namespace

// What the system calls below tell the recording.
class Calls {
 public:
  static std::optional<std::string> name_in_folder(const fs::path& path) {
    if (current == nullptr) return std::nullopt;
    const fs::path whole = fs::absolute(path).lexically_normal();
    if (whole.parent_path() != current->folder_) return std::nullopt;
    return whole.filename().string();
  }
  static std::optional<std::string> name_of(int descriptor) {
    if (current == nullptr) return std::nullopt;
    char target[PATH_MAX];
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
    if (size < 0) return std::nullopt;
    return name_in_folder(std::string(target, static_cast<std::size_t>(size)));
  }
  static bool is_folder(int descriptor) {
    if (current == nullptr) return false;
    char target[PATH_MAX];
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
    return size >= 0 && std::string(target, static_cast<std::size_t>(size)) == current->folder_;
  }

  static void opened(const char* path, int flags, bool existed) {
    const std::optional<std::string> name = name_in_folder(path);
    if (!name) return;
    if (!existed) {
      current->names_[*name] = current->files_++;
      current->events_.emplace_back(Create{current->names_[*name], *name});
    } else if ((flags & O_TRUNC) != 0) {
      current->events_.emplace_back(Truncate{current->names_.at(*name), 0});
    }
  }
  static void wrote(int descriptor, const void* data, ssize_t size, off64_t offset) {
    const std::optional<std::string> name = size > 0 ? name_of(descriptor) : std::nullopt;
    if (!name) return;
    current->events_.emplace_back(
        Write{current->names_.at(*name), static_cast<std::size_t>(offset),
              std::string(static_cast<const char*>(data), static_cast<std::size_t>(size))});
  }
  static void truncated(int descriptor, off64_t size) {
    if (const std::optional<std::string> name = name_of(descriptor))
      current->events_.emplace_back(
          Truncate{current->names_.at(*name), static_cast<std::size_t>(size)});
  }
  static void synced(int descriptor) {
    if (is_folder(descriptor)) {
      current->events_.emplace_back(SyncFolder{});
    } else if (const std::optional<std::string> name = name_of(descriptor)) {
      current->events_.emplace_back(Sync{current->names_.at(*name)});
    }
  }
  static void unlinked(const char* path) {
    if (const std::optional<std::string> name = name_in_folder(path)) {
      current->names_.erase(*name);
      current->events_.emplace_back(Unlink{*name});
    }
  }
  static void renamed(const char* from, const char* to) {
    const std::optional<std::string> before = name_in_folder(from);
    const std::optional<std::string> after = name_in_folder(to);
    if (!before || !after) return;
    current->names_[*after] = current->names_.at(*before);
    current->names_.erase(*before);
    current->events_.emplace_back(Rename{*before, *after});
  }
};

Recording::Recording(const fs::path& folder) : folder_(fs::canonical(folder)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    at_start_[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  for (const auto& [name, content] : at_start_) names_[name] = files_++;
  current = this;
}

Recording::~Recording() { stop(); }

void Recording::stop() { current = nullptr; }

void Recording::acknowledge() { events_.emplace_back(Acknowledge{++acknowledged_}); }

int Recording::acknowledged(std::size_t end) const {
  int number = 0;
  for (std::size_t i = 0; i < end; ++i) {
    if (const auto* ack = std::get_if<Acknowledge>(&events_[i])) number = ack->number;
  }
  return number;
}

Folder Recording::after_loss(std::size_t end, Loss loss, std::mt19937_64& random) const {
  std::map<std::string, int> names;
  int file = 0;
  for (const auto& [name, content] : at_start_) names[name] = file++;
  Disk disk(at_start_, names);
  for (std::size_t i = 0; i < end; ++i) disk.apply(events_[i]);
  return disk.after_loss(loss, random);
}

}  // namespace memfathom::power_loss

// The system calls. SQLite's library finds them in the program before it looks into the C library.
using memfathom::power_loss::Calls;

namespace {

int open_and_record(const char* path, int flags, mode_t mode) {
  const bool existed = syscall(SYS_access, path, F_OK) == 0;
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  const int error = errno;
  if (file >= 0 && (flags & O_ACCMODE) != O_RDONLY) Calls::opened(path, flags, existed);
  errno = error;
  return file;
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : mode_t{0};
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_and_record(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_and_record(path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  const off64_t offset = syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
  const ssize_t done = syscall(SYS_write, descriptor, data, size);
  const int error = errno;
  Calls::wrote(descriptor, data, done, offset);
  errno = error;
  return done;
}

ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  const ssize_t done = syscall(SYS_pwrite64, descriptor, data, size, offset);
  const int error = errno;
  Calls::wrote(descriptor, data, done, offset);
  errno = error;
  return done;
}

int ftruncate64(int descriptor, off64_t size) noexcept {
  const int result = static_cast<int>(syscall(SYS_ftruncate, descriptor, size));
  if (result == 0) Calls::truncated(descriptor, size);
  return result;
}

int fsync(int descriptor) {
  const int result = static_cast<int>(syscall(SYS_fsync, descriptor));
  if (result == 0) Calls::synced(descriptor);
  return result;
}

int fdatasync(int descriptor) {
  const int result = static_cast<int>(syscall(SYS_fdatasync, descriptor));
  if (result == 0) Calls::synced(descriptor);
  return result;
}

int unlink(const char* path) noexcept {
  const int result = static_cast<int>(syscall(SYS_unlink, path));
  const int error = errno;
  if (result == 0) Calls::unlinked(path);
  errno = error;
  return result;
}

int rename(const char* from, const char* to) noexcept {
  const int result = static_cast<int>(syscall(SYS_rename, from, to));
  if (result == 0) Calls::renamed(from, to);
  return result;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  const int result =
      static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  if (result == 0) Calls::renamed(from, to);
  return result;
}

}  // extern "C"
