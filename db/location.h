// Where files live by default: the database in the user's data directory, the workspace cache in
// the cache directory.
#pragma once

#include <filesystem>

namespace memfathom {

// $MEMFATHOM_DB, else memfathom/memfathom.db under $XDG_DATA_HOME, else under ~/.local/share.
// Throws Error(kEnvironment) when none of these variables and no home directory is known.
std::filesystem::path default_database_path();

// memfathom/workspaces.db under $XDG_CACHE_HOME, else under ~/.cache.
std::filesystem::path default_workspace_cache_path();

}  // namespace memfathom
