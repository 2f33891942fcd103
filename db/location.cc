#include "db/location.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"

namespace memfathom {
namespace {

// A directory of the XDG base directory specification, which says that a relative value is to be
// ignored.
std::filesystem::path xdg_directory(const char* variable, const char* below_home) {
  const char* value = std::getenv(variable);
  if (value != nullptr && value[0] == '/') return value;
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("neither {} nor HOME is set to an absolute path; name the database "
                            "with --db or MEMFATHOM_DB",
                            variable));
  }
  return std::filesystem::path(home) / below_home;
}

}  // namespace

std::filesystem::path default_database_path() {
  const char* chosen = std::getenv("MEMFATHOM_DB");
  if (chosen != nullptr && chosen[0] != '\0') return chosen;
  return xdg_directory("XDG_DATA_HOME", ".local/share") / "memfathom" / "memfathom.db";
}

std::filesystem::path default_workspace_cache_path() {
  return xdg_directory("XDG_CACHE_HOME", ".cache") / "memfathom" / "workspaces.db";
}

}  // namespace memfathom
