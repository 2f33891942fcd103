// command_line: training commands and shell scripts as parts of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// A command as a shell passes it: {"accelerate", "launch", "train.py", "--bf16"}. Throws
// Error(kInput) if it starts no program that is known to train.
std::vector<ParsedFile> read_command_line(const std::vector<std::string>& words);

// The training command of a script's text. `line` chooses among several (0: there must be one).
std::vector<ParsedFile> read_script_text(std::string_view text, const std::string& file, int line);

// The same of a file: "train.sh", or "train.sh:12" for the command in line 12.
std::vector<ParsedFile> read_script(const std::string& path);

// Whether a path names a shell script, perhaps with a line.
bool is_script_path(const std::string& path);

// A shell script, or anything that readers/ read: what --from and JOB name.
std::vector<ParsedFile> read_source(const std::string& path);
std::vector<ParsedFile> read_sources(const std::vector<std::string>& paths);

}  // namespace memfathom
