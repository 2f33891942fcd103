// launcher_settings: what launchers and the environment of a command decide: GPUs, sharding.
#pragma once

#include <vector>

#include "estimator/command_line/reading.h"

namespace memfathom {

// Call after the program's own flags were read.
std::vector<ParsedFile> read_launcher_settings(CommandReading& reading);

}  // namespace memfathom
