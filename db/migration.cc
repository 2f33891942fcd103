#include "db/migration.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <string>

#include "db/connection.h"

namespace memfathom {
namespace {

// Rolls back what is open at its end. SQLite::Transaction would end the program where that takes
// memory that is not there.
class Rollback {
 public:
  explicit Rollback(SQLite::Database& database) : database_(database) {}
  ~Rollback() {
    if (sqlite3_get_autocommit(database_.getHandle()) == 0) database_.tryExec("ROLLBACK");
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;

 private:
  SQLite::Database& database_;
};

}  // namespace

int latest_schema() { return static_cast<int>(migration_files().size()); }

int schema_of(SQLite::Database& database) {
  return database.execAndGet("PRAGMA user_version").getInt();
}

void migrate(SQLite::Database& database, std::span<const EmbeddedFile> files) {
  const Rollback unless_committed(database);
  database.exec("BEGIN IMMEDIATE");
  for (auto next = static_cast<std::size_t>(schema_of(database)); next < files.size(); ++next) {
    database.exec(std::string(files[next].text));
    database.exec(fmt::format("PRAGMA user_version = {}", next + 1));
  }
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec("COMMIT");
}

}  // namespace memfathom
