// Migrations: the numbered SQL files that upgrade an empty or older database to the current schema.
// Private to db/.
#pragma once

#include <SQLiteCpp/Database.h>

#include <span>

#include "db/embedded.h"

namespace memfathom {

// The schema this program reads and writes.
int latest_schema();

int schema_of(SQLite::Database& database);  // user_version; 0 is an empty file

// Applies files[schema_of(database)], ... in one transaction. Checks the schema again under the
// lock, because another process may have upgraded it meanwhile.
void migrate(SQLite::Database& database, std::span<const EmbeddedFile> files = migration_files());

}  // namespace memfathom
