// The database of a command: the file of --db, else the default one.
#pragma once

#include <filesystem>

#include "cli/command.h"

namespace memfathom {

std::filesystem::path database_path(const Context& context);

}  // namespace memfathom
