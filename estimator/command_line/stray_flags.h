// Flags that the shell does not pass: they stand behind a line that does not continue its command,
// because its backslash is missing, or because a comment stands between.
#pragma once

#include <string>

namespace memfathom {

struct CommandReading;
struct ShellScript;

// Pages often break a command after its script, without backslashes: the lines of flags below are
// then the command's.
void join_flag_lines(const std::string& file, ShellScript& script);

// Names them, and leaves the verdict open where one may change the memory.
void name_stray_flags(CommandReading& reading);

}  // namespace memfathom
