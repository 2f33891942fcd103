// Any text is a shell script, whose commands are readings or an Error; none of it is executed, and
// no expansion grows without bound.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "estimator/command_line/command_line.h"
#include "estimator/command_line/shell.h"
#include "estimator/readers/merge.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  memfathom::ShellScript script;
  try {
    const memfathom::ShellLimits limits{.max_expanded_bytes = std::size_t{1} << 20,
                                        .max_commands = 200};
    script = memfathom::read_shell(text, "fuzz.sh", limits);
  } catch (const memfathom::Error&) {
    return 0;  // a sentence for the user is a fine answer
  }
  for (const memfathom::ShellCommand& command : script.commands) {
    std::vector<std::string> words;
    for (const memfathom::ShellWord& word : command.words) words.push_back(word.text);
    try {
      memfathom::merge_files(memfathom::read_command_line(words));
    } catch (const memfathom::Error&) {
    }
    try {
      memfathom::read_script_text(text, "fuzz.sh", command.line);
    } catch (const memfathom::Error&) {
    }
  }
  return 0;
}
