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

// $MEMFATHOM_FLEET_DB: a database that others maintain, read in addition to one's own. nullopt if
// it is not set.
std::optional<std::filesystem::path> find_fleet_database_path();

}  // namespace memfathom
