// location: the default path of the database.
#pragma once

#include <filesystem>
#include <optional>

namespace memfathom {

// $MEMFATHOM_DB, else memfathom/memfathom.db under $XDG_DATA_HOME, else under ~/.local/share.
// nullopt if none of these is set: estimating works without a database.
std::optional<std::filesystem::path> find_default_database_path();

// The same for commands that need one: throws Error(kEnvironment) if none of these is set.
std::filesystem::path default_database_path();

}  // namespace memfathom
