// Flags that the shell does not pass: they stand behind a line that does not continue its command,
// because its backslash is missing, or because a comment stands between.
#pragma once

namespace memfathom {

struct CommandReading;

// Names them, and leaves the verdict open where one may change the memory.
void name_stray_flags(CommandReading& reading);

}  // namespace memfathom
