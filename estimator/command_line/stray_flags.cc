#include "estimator/command_line/stray_flags.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "estimator/command_line/flags.h"
#include "estimator/command_line/reading.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

// A line that is only flags is no command of its own.
bool is_stray(const ShellCommand& command) {
  return !command.words.empty() && command.words.front().text.starts_with("--") &&
         command.words.front().text.size() > 2;
}

void name_flags_of(const ShellCommand& line, CommandReading& reading) {
  const Flags flags = read_flags(line.words, reading.file);
  for (const Node& flag : flags.tree.entries()) {
    const std::string key(flag.key());
    const Node* passed = reading.flag(key);
    if ((passed != nullptr && passed->same_value(flag)) ||
        harmless_reason(FileFormat::kCommandLine, key))
      continue;
    const Node value = flag.is_map() ? Node::string("set") : flag;
    const std::string_view concern = concern_of(key, value);
    const std::string sentence = fmt::format(
        "{}: --{} in line {} stands behind a line that does not continue the command (a backslash "
        "is its last character where it does); the shell does not pass it",
        reading.file, key, line.line);
    if (concern.empty()) {
      reading.assume(sentence);
    } else {
      reading.leave_open(key, concern, sentence);
    }
  }
}

}  // namespace

void join_flag_lines(const std::string& file, ShellScript& script) {
  std::vector<ShellCommand>& commands = script.commands;
  for (std::size_t i = 0; i + 1 < commands.size(); ++i) {
    if (is_stray(commands[i]) || commands[i].words.empty() || !is_stray(commands[i + 1]) ||
        !commands[i].words.back().text.ends_with(".py"))
      continue;
    std::size_t end = i + 1;
    for (; end < commands.size() && is_stray(commands[end]); ++end) {
      std::vector<ShellWord>& words = commands[end].words;
      commands[i].words.insert(commands[i].words.end(), words.begin(), words.end());
    }
    script.notes.push_back(
        fmt::format("{}:{}: the flags in the lines below it are read as its own, though no "
                    "backslash continues it",
                    file, commands[i].line));
    const auto first = commands.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    commands.erase(first, commands.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void name_stray_flags(CommandReading& reading) {
  bool is_behind = false;
  for (const ShellCommand& command : reading.script.commands) {
    if (&command == &reading.command) {
      is_behind = true;
    } else if (is_behind) {
      if (!is_stray(command)) return;
      name_flags_of(command, reading);
    }
  }
}

}  // namespace memfathom
