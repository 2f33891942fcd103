// Opens a command's database: the --db file, or the default.
#pragma once

#include <filesystem>

#include "cli/command.h"

namespace memfathom {

std::filesystem::path database_path(const Context& context);

}  // namespace memfathom
