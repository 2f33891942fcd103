// Files of kohya's sd-scripts: the flags of --config_file in sections, and --dataset_config, which
// says batches and resolutions.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"

namespace memfathom {

struct CommandReading;

bool is_kohya_config(const Node& tree);

// The command that such a file is for; its script's name is the family that the file says.
std::vector<std::string> kohya_command(const Node& tree, const std::string& path);

// Lays the flags of --config_file under those of the command, whatever sections they stand in.
void lay_kohya_config_under(CommandReading& reading);

// The largest batch and resolution of --dataset_config, which win over the command's.
void read_kohya_datasets(CommandReading& reading);

}  // namespace memfathom
