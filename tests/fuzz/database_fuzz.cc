// Any bytes are a database or an Error: what opens is checked and read whole, and written to.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "db/store.h"

namespace {

namespace fs = std::filesystem;

// In memory where that is mounted: every input is a file.
fs::path folder() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  const fs::path path = parent / ("memfathom-database-fuzz-" + std::to_string(getpid()));
  fs::create_directories(path);
  return path;
}

struct Folder {
  fs::path path = folder();
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// Databases of SQLite always have a header: this makes any input one of ours, if it has none.
std::string with_our_header(std::string bytes) {
  constexpr std::size_t kHeader = 100;
  if (bytes.size() < kHeader) return bytes;
  bytes.replace(0, 16, std::string("SQLite format 3\0", 16));
  bytes.replace(68, 4, "mfdb");
  return bytes;
}

void use(const fs::path& path, memfathom::Store::Mode mode) {
  using namespace memfathom;
  try {
    Store store = Store::open(path, mode);
    store.check();
    store.samples({.include_virtual = true, .include_removed = true});
    store.calibrations();
    store.stored_observations();
    if (mode == Store::Mode::kReadWrite) {
      Observation observation;
      observation.job = "{}";
      observation.bytes = Bytes{1};
      store.insert_observation(observation);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const fs::path path = folder.path / "fuzz.db";
  std::ofstream(path, std::ios::binary)
      << with_our_header(std::string(reinterpret_cast<const char*>(data), size));
  use(path, memfathom::Store::Mode::kReadOnly);
  use(path, memfathom::Store::Mode::kReadWrite);
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(path.string() + "-journal", ignored);
  return 0;
}
