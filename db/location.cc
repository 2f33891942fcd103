#include "db/location.h"

#include <cstdlib>

#include "core/error.h"

namespace memfathom {
namespace {

std::optional<std::filesystem::path> data_directory() {
  // The XDG base directory specification requires that relative values are ignored.
  const char* value = std::getenv("XDG_DATA_HOME");
  if (value != nullptr && value[0] == '/') return value;
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return std::nullopt;
  return std::filesystem::path(home) / ".local/share";
}

}  // namespace

std::optional<std::filesystem::path> find_default_database_path() {
  const char* chosen = std::getenv("MEMFATHOM_DB");
  if (chosen != nullptr && chosen[0] != '\0') return chosen;
  std::optional<std::filesystem::path> directory = data_directory();
  if (directory) *directory /= "memfathom/memfathom.db";
  return directory;
}

std::filesystem::path default_database_path() {
  if (std::optional<std::filesystem::path> path = find_default_database_path()) return *path;
  throw Error(
      ErrorKind::kEnvironment,
      "neither XDG_DATA_HOME nor HOME is set to an absolute path; name the database with --db or "
      "MEMFATHOM_DB");
}

std::optional<std::filesystem::path> find_fleet_database_path() {
  const char* chosen = std::getenv("MEMFATHOM_FLEET_DB");
  if (chosen == nullptr || chosen[0] == '\0') return std::nullopt;
  return chosen;
}

}  // namespace memfathom
