#include "cli/database.h"

#include "db/location.h"

namespace memfathom {

std::filesystem::path database_path(const Context& context) {
  return context.db ? std::filesystem::path(*context.db) : default_database_path();
}

}  // namespace memfathom
