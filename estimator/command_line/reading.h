// CommandReading: what one training command says, while the reader of its program works on it.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/document.h"
#include "estimator/command_line/flags.h"
#include "estimator/command_line/launch.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// A flag of a program in the word that a format has for it.
struct Spelling {
  std::string_view flag;
  std::string_view key;
};

struct CommandReading {
  const ShellCommand& command;
  const ShellScript& script;
  const Launch& launch;
  Flags flags;
  std::string file;                // "train.sh:12" or "command line"
  ParsedFile parsed;               // the command's own settings
  std::vector<ParsedFile> others;  // of the files it names; they yield to the command
  std::vector<std::pair<std::string, std::string>> renamed;  // key, the flag it was
  std::vector<std::string> script_defaults;  // flags that the command leaves to its script
  bool has_script = false;                   // the training script itself is here, ...
  bool follows_trl = false;                  // ... and takes TRL's arguments
  bool makes_optimizer = false;              // ... or makes its optimizer itself

  const Node* flag(std::string_view key) const { return value_at(flags.tree, key); }
  std::string text(std::string_view key) const { return text_at(flags.tree, key); }
  bool is_set(std::string_view key) const { return is_true_at(flags.tree, key); }
  // Whether a setting of the job is decided, by the command or by a file that it names.
  bool decides(std::string_view key) const;
  // Sets a key that the command leaves to its program's default.
  void set_default(std::string_view key, Node value);
  // Whether the key's value is the script's default and not the command's.
  bool is_script_default(std::string_view key) const;
  void rename(std::span<const Spelling> spellings);
  // Pairs of answers, each through the model, whose head has one output.
  void train_reward_model();
  void assume(const std::string& sentence) { parsed.assumptions.push_back(sentence); }
  // For what takes less than what is counted instead of it.
  void leave_out(const std::string& sentence) { parsed.not_modelled.push_back(sentence); }
  // For what may take more: the verdict stays open, and `named` stands in the answer.
  void leave_open(std::string_view named, std::string_view concerns, std::string sentence) {
    withhold(named, concerns, std::move(sentence), parsed);
  }
};

// The readers of programs, each in its own words. They take their flags from `flags.tree` and fill
// `parsed`.
void read_trainer_command(CommandReading& reading);  // transformers' Trainer and TRL
void read_swift_command(CommandReading& reading);    // ms-swift
void read_llama_factory_command(CommandReading& reading);
void read_file_command(CommandReading& reading);  // axolotl train FILE, tune run --config
void read_megatron_command(CommandReading& reading);
void read_openrlhf_command(CommandReading& reading);
void read_verl_command(CommandReading& reading);
void read_diffusion_command(CommandReading& reading);  // diffusers' and kohya's scripts
void read_litgpt_command(CommandReading& reading);
void read_own_command(CommandReading& reading);  // any other script

// Reads the tree of flags in the words of a format.
void read_as(FileFormat format, CommandReading& reading);

// For programs without a format of their own: `read` looks up the flags it knows in
// `parsed.content`, and the others are named.
void read_known_flags(void (*read)(CommandReading&), CommandReading& reading);

// The first of the flags that is given; null if none is.
const Node* first_flag(const CommandReading& reading, std::initializer_list<std::string_view> keys);

// The tree of a configuration file with the command's flags laid over it.
void read_with_file(const std::string& path, CommandReading& reading);

// A file that the command names: written by the script itself, beside the script, above it, or
// where the program runs. Nothing if it is nowhere.
std::optional<std::string> find_named_file(const CommandReading& reading, const std::string& named);

// The tree of such a file; a here-document of the script counts.
std::optional<Node> load_named_file(const CommandReading& reading, const std::string& named);

// The name of a model that a command gives as a path which is not here: its last parts.
std::string model_name_of(const std::string& named, CommandReading& reading);

// The text of a value whatever its type: "8", "bf16".
std::string word_of(const Node& value);

// The DeepSpeed file that a flag names; stage and offload of its name where it is not here.
void add_deepspeed_file(const std::string& named, std::string_view key, CommandReading& reading);

}  // namespace memfathom
