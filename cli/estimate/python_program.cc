#include "cli/estimate/python_program.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace memfathom {

std::string find_python(const std::string& named) {
  if (!named.empty()) return named;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* folder = std::getenv(variable);
    if (folder == nullptr || *folder == '\0') continue;
    const std::filesystem::path python = std::filesystem::path(folder) / "bin" / "python";
    std::error_code failure;
    if (std::filesystem::exists(python, failure)) return python.string();
  }
  return "python3";
}

std::string python_package_folder() {
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return "";
  const std::filesystem::path folder =
      program.parent_path().parent_path() / "share" / "memfathom" / "python";
  return std::filesystem::exists(folder / "memfathom" / "torch" / "__main__.py", failure)
             ? folder.string()
             : "";
}

}  // namespace memfathom
