// Global options: accepted by every command, before or after its name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/language/language.h"

namespace memfathom {

struct GlobalOptions {
  std::optional<std::string> db;
  std::optional<std::string> output;
  Format format = Format::kTable;
  std::optional<Language> language;  // --lang
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
  bool help = false;
  bool version = false;
};

struct CommandLine {
  GlobalOptions global;
  std::string command;  // empty when there is none
  Arguments arguments;
};

// Extracts the global options anywhere before a bare "--". Underscores in option names become
// hyphens (--batch_size is --batch-size). Throws Error(kUsage).
CommandLine parse_command_line(const std::vector<std::string>& words);

std::span<const std::string_view> global_option_names();  // "--db", "--format", ...

}  // namespace memfathom
