#include "core/companion_files.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace memfathom {
namespace {

constexpr char kInThisBinary = 0;

void add_once(std::vector<std::filesystem::path>& paths, std::filesystem::path path) {
  if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
}

std::filesystem::path prefix_of(const std::filesystem::path& binary) {
  const std::filesystem::path prefix = binary.parent_path().parent_path();
  // Debian's and Ubuntu's PREFIX/lib/x86_64-linux-gnu.
  return prefix.filename() == "lib" ? prefix.parent_path() : prefix;
}

// The X of python3.X, or -1.
int minor_version(const std::string& folder) {
  constexpr std::string_view kStart = "python3.";
  if (!folder.starts_with(kStart)) return -1;
  int minor = -1;
  const char* end = folder.data() + folder.size();
  const auto [rest, error] = std::from_chars(folder.data() + kStart.size(), end, minor);
  return error == std::errc{} && rest == end ? minor : -1;
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
    const std::filesystem::path prefix = prefix_of(binary);
    add_once(places, here / name);
    add_once(places, prefix / "bin" / name);
    add_once(places, prefix / folder / "memfathom" / name);
  }
  return places;
}

std::vector<std::filesystem::path> python_package_places(
    std::span<const std::filesystem::path> binaries, std::string_view package,
    std::string_view name) {
  std::vector<std::filesystem::path> places;
  for (const std::filesystem::path& binary : binaries) {
    std::map<int, std::vector<std::filesystem::path>, std::greater<>> found;
    for (const char* library : {"lib", "lib64"}) {
      std::error_code error;
      for (const auto& entry :
           std::filesystem::directory_iterator(prefix_of(binary) / library, error)) {
        const int minor = minor_version(entry.path().filename());
        if (minor < 0) continue;
        for (const char* packages : {"site-packages", "dist-packages"}) {
          const std::filesystem::path file = entry.path() / packages / package / name;
          if (std::filesystem::exists(file, error)) found[minor].push_back(file);
        }
      }
    }
    for (const auto& [minor, files] : found) {
      for (const std::filesystem::path& file : files) add_once(places, file);
    }
  }
  return places;
}

}  // namespace memfathom
