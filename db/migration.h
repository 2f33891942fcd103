// Migrations: the numbered SQL files that lead from an empty database to the present schema.
// Private to db/.
#pragma once

#include <SQLiteCpp/Database.h>

#include <span>

#include "db/embedded.h"

namespace memfathom {

// The schema this program reads and writes.
int latest_schema();

int schema_of(SQLite::Database& database);  // user_version; 0 is an empty file

// Applies files[schema_of(database)], ... in one transaction: all or nothing. Another process may
// have done it meanwhile, which is found out under the lock.
void migrate(SQLite::Database& database, std::span<const EmbeddedFile> files = migration_files());

}  // namespace memfathom
