// Shell: the commands of a shell script, with the variables that the script itself sets.
//
// Nothing is executed. What only a run could know (command substitutions, variables set outside,
// values that depend on a branch) stays in its word and is named there.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

struct ShellWord {
  std::string text;                     // an unresolved part stands in it as $NAME
  std::vector<std::string> unresolved;  // "NAME", "$(command)"; empty: the word is complete
};

struct ShellCommand {
  int line = 0;                  // where it starts
  std::vector<ShellWord> words;  // without variables set before the command
  std::map<std::string, ShellWord, std::less<>> environment;  // those of kWatchedVariables
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, std::string, std::less<>> files;  // written by `cat > NAME << END`
  std::vector<std::string> notes;  // what was assumed: the first value of a loop
};

struct ShellLimits {
  std::size_t max_text_bytes = std::size_t{4} << 20;
  std::size_t max_expanded_bytes = std::size_t{16} << 20;
  std::size_t max_commands = 20000;
  int max_depth = 32;
};

// Throws Error(kInput), naming `file`, if the text exceeds the limits or is binary.
ShellScript read_shell(std::string_view text, const std::string& file,
                       const ShellLimits& limits = {});

// A command that a shell has split into words already: VAR=value in front is its environment.
ShellCommand command_of(const std::vector<std::string>& words);

}  // namespace memfathom
