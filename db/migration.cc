#include "db/migration.h"

#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <string>

#include "db/connection.h"

namespace memfathom {

int latest_schema() { return static_cast<int>(migration_files().size()); }

int schema_of(SQLite::Database& database) {
  return database.execAndGet("PRAGMA user_version").getInt();
}

void migrate(SQLite::Database& database, std::span<const EmbeddedFile> files) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (auto next = static_cast<std::size_t>(schema_of(database)); next < files.size(); ++next) {
    database.exec(std::string(files[next].text));
    database.exec(fmt::format("PRAGMA user_version = {}", next + 1));
  }
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  transaction.commit();
}

}  // namespace memfathom
