// Opens a command's database: the --db file, or the default.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "db/store.h"

namespace memfathom {

// Throws Error(kEnvironment) if there is no default one (db/location.h).
std::filesystem::path database_path(const Context& context);

// For commands that work without a database: nullopt where none is named and there is no HOME.
std::optional<std::filesystem::path> find_database(const Context& context);

// The database if there is one that has been written to.
std::optional<Store> open_database_if_exists(const Context& context);

}  // namespace memfathom
