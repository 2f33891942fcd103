// Script deeds: what a training script does to memory itself, whatever the flags say, found by the
// calls in its text.
#pragma once

#include <string_view>
#include <vector>

namespace memfathom {

struct CommandReading;
struct ScriptText;

struct ScriptDeed {
  std::string_view call;
  std::string_view concerns;  // as in UnreadKey
  std::string_view decided;   // the setting of the job that a flag may decide instead
  std::string_view what;      // "shards the model with FSDP"
};

std::vector<ScriptDeed> deeds_in(std::string_view python);

// Leaves the verdict open for each that neither a flag nor an option of the script decides.
void leave_deeds_open(const ScriptText& script, CommandReading& reading);

}  // namespace memfathom
