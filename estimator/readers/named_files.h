// named_files: files that another file or a command names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// False also where the folder may not be read.
bool is_there(const std::filesystem::path& path);

// Whether a folder has a model's configuration or a pipeline's index.
bool describes_a_model(const std::filesystem::path& folder);

// Where the file stands that `file` names: beside that one, in a folder above (examples name their
// files from the top of the repository), or where the program runs and above. Empty: nowhere.
std::filesystem::path found_from(const std::filesystem::path& file,
                                 const std::filesystem::path& named);

// A DeepSpeed file that is not here but has a name that says what is in it:
// "zero3_bf16_cpuoffload_all.json", "ds_z2_config.json". `parsed` names it.
std::optional<ParsedFile> deepspeed_by_name(const ParsedFile& parsed, const std::string& named);

}  // namespace memfathom
