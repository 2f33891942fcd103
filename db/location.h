// Where the database is unless somebody says otherwise.
#pragma once

#include <filesystem>

namespace memfathom {

// $MEMFATHOM_DB, else memfathom/memfathom.db under $XDG_DATA_HOME, else under ~/.local/share.
// Throws Error(kEnvironment) when none of these variables and no home directory is known.
std::filesystem::path default_database_path();

}  // namespace memfathom
