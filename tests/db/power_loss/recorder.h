// Recorder: what this process does to the files of one folder, and the states in which a power loss
// at any moment could leave them.
//
// The program defines the system calls that SQLite and our own code write with (recorder.cc), so
// that everything is seen: files of SQLite, their journals, folders that are synced, renamed
// backups. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace memfathom::power_loss {

// Names of files and their contents.
using Folder = std::map<std::string, std::string>;

struct Create {
  int file;
  std::string name;
};
struct Write {
  int file;
  std::size_t offset;
  std::string data;
};
struct Truncate {
  int file;
  std::size_t size;
};
struct Sync {
  int file;
};
struct SyncFolder {};
struct Unlink {
  std::string name;
};
struct Rename {
  std::string from, to;
};
// The caller was told that what it asked for is stored: from here on nothing of it may be lost.
struct Acknowledge {
  int number;
};
using Event = std::variant<Create, Write, Truncate, Sync, SyncFolder, Unlink, Rename, Acknowledge>;

// What a power loss does to what was not synced.
enum class Loss {
  kAll,   // nothing of it reached the disk
  kNone,  // everything did
  kSome,  // each write or not, in any order; names in the order in which they were given
  kTorn,  // the same by sectors of 512 bytes
};

class Recording {
 public:
  // Files that are there at the start are durable.
  explicit Recording(const std::filesystem::path& folder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void acknowledge();
  // Ends the recording; later calls change nothing.
  void stop();

  const std::vector<Event>& events() const { return events_; }
  // How many acknowledgements there were before the event `end`.
  int acknowledged(std::size_t end) const;
  // The folder after a loss of power right before the event `end`.
  Folder after_loss(std::size_t end, Loss loss, std::mt19937_64& random) const;

 private:
  friend class Calls;
  int file_named(const std::string& name);

  std::filesystem::path folder_;
  Folder at_start_;
  std::map<std::string, int> names_;  // of files as the process sees them
  int files_ = 0;
  int acknowledged_ = 0;
  std::vector<Event> events_;
};

}  // namespace memfathom::power_loss
