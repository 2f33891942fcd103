// location: the default path of the database.
#pragma once

#include <filesystem>

namespace memfathom {

// $MEMFATHOM_DB, else memfathom/memfathom.db under $XDG_DATA_HOME, else under ~/.local/share.
// Throws Error(kEnvironment) if none of these is set.
std::filesystem::path default_database_path();

}  // namespace memfathom
