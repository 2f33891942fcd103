// What the training script itself says, where it lies here: the defaults of its options, and
// adapters or few-bit weights that it makes whatever the flags say.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/document.h"
#include "estimator/command_line/script_deeds.h"

namespace memfathom {

struct CommandReading;

struct ScriptText {
  std::string path;  // empty: the script is not here
  // Of add_argument(), and of annotated names: the fields of a dataclass, a function's parameters.
  std::vector<std::pair<std::string, Node>> defaults;
  std::vector<std::string> switches;  // options that are off unless the command has them
  bool makes_adapters = false;        // get_peft_model(...), LoraConfig(...)
  bool loads_few_bits = false;        // load_in_8bit=True and the like
  bool follows_trl = false;           // it takes TRL's arguments, with their defaults
  bool makes_optimizer = false;       // in a loop of its own, without transformers' Trainer
  std::vector<ScriptDeed> deeds;
};

// `file` is named in errors.
ScriptText read_script_text_of(std::string_view python, const std::string& file);

// That of the command's script; nothing of one that is not here.
ScriptText load_script_text(const CommandReading& reading);

// Lays those defaults that may change memory under the flags, and says so.
void lay_defaults_under(const ScriptText& script, CommandReading& reading);

// Whether the script has an option that concerns this and is off unless the command turns it on:
// what its text does is then behind that option.
bool has_option_for(const ScriptText& script, std::string_view concerns);

// The same of a Python file of settings that the command names: "batch_size = 12".
void lay_python_settings_under(const std::string& named, CommandReading& reading);

// Leaves the verdict open where the script makes adapters or loads few bits and none were read.
void leave_script_open(const ScriptText& script, CommandReading& reading);

}  // namespace memfathom
