#include "cli/database.h"

#include "db/location.h"

namespace memfathom {

std::filesystem::path database_path(const Context& context) {
  return context.db ? std::filesystem::path(*context.db) : default_database_path();
}

std::optional<std::filesystem::path> find_database(const Context& context) {
  return context.db ? std::filesystem::path(*context.db) : find_default_database_path();
}

std::optional<Store> open_database_if_exists(const Context& context) {
  const std::optional<std::filesystem::path> path = find_database(context);
  return path ? Store::open_if_exists(*path) : std::nullopt;
}

}  // namespace memfathom
