#include "core/companion_files.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace memfathom {
namespace {

constexpr char kInThisBinary = 0;

void add_once(std::vector<std::filesystem::path>& paths, std::filesystem::path path) {
  if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
}

}  // namespace

std::vector<std::filesystem::path> own_binaries() {
  std::vector<std::filesystem::path> binaries;
  std::error_code error;
  Dl_info place{};
  void* entry = nullptr;
  // The dynamic linker's name of the program itself is empty.
  if (dladdr1(&kInThisBinary, &place, &entry, RTLD_DL_LINKMAP) != 0 && entry != nullptr) {
    const std::filesystem::path name = static_cast<const link_map*>(entry)->l_name;
    const std::filesystem::path library = std::filesystem::canonical(name, error);
    if (!error) add_once(binaries, library);
  }
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) add_once(binaries, program);
  return binaries;
}

std::vector<std::filesystem::path> companion_places(std::span<const std::filesystem::path> binaries,
                                                    std::string_view folder,
                                                    std::string_view name) {
  std::vector<std::filesystem::path> places;
  for (const std::filesystem::path& binary : binaries) {
    const std::filesystem::path here = binary.parent_path();
    std::filesystem::path prefix = here.parent_path();
    // Debian's and Ubuntu's PREFIX/lib/x86_64-linux-gnu.
    if (prefix.filename() == "lib") prefix = prefix.parent_path();
    add_once(places, here / name);
    add_once(places, prefix / "bin" / name);
    add_once(places, prefix / folder / "memfathom" / name);
  }
  return places;
}

}  // namespace memfathom
