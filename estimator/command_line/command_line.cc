#include "estimator/command_line/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "core/error.h"
#include "core/key_recorder.h"
#include "core/parse_number.h"
#include "estimator/command_line/diffusion_pipeline.h"
#include "estimator/command_line/kohya_config.h"
#include "estimator/command_line/launcher_settings.h"
#include "estimator/command_line/left_out.h"
#include "estimator/command_line/purpose.h"
#include "estimator/command_line/reading.h"
#include "estimator/command_line/script_text.h"
#include "estimator/command_line/stray_flags.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

constexpr const char* kWords = "command line";
constexpr const char* kKnownPrograms =
    "python, torchrun, accelerate launch, deepspeed, swift, trl, llamafactory-cli, axolotl, litgpt "
    "and tune are known (docs/command-lines.md); memfathom capture SCRIPT records the steps of any "
    "PyTorch script, and --model NAME --mode generate estimates a server's model";

using CommandReader = void (*)(CommandReading&);

struct Program {
  std::string_view part;  // of the program's name
  CommandReader read;
};

// The first whose part is in the program's name decides.
constexpr auto kPrograms = std::to_array<Program>({
    {"swift", read_swift_command},
    {"megatron", read_swift_command},  // ms-swift's `megatron sft`
    {"trl", read_trainer_command},
    {"llamafactory", read_llama_factory_command},
    {"axolotl", read_file_command},
    {"tune", read_file_command},
    {"litgpt", read_litgpt_command},
    {"openrlhf", read_openrlhf_command},
    {"verl.", read_verl_command},
});

// Flags that only one kind of program has; one of each row's is enough.
struct TellingFlag {
  std::string_view key;
  CommandReader read;
};

constexpr auto kTellingFlags = std::to_array<TellingFlag>({
    {"finetuning_type", read_llama_factory_command},
    {"cutoff_len", read_llama_factory_command},
    {"actor_rollout_ref", read_verl_command},
    {"model.partial_pretrain", read_verl_command},
    {"tensor_model_parallel_size", read_megatron_command},
    {"ffn_hidden_size", read_megatron_command},
    {"micro_train_batch_size", read_openrlhf_command},
    {"network_module", read_diffusion_command},
    {"network_dim", read_diffusion_command},
    {"pretrained_model_name_or_path", read_diffusion_command},
    {"per_device_train_batch_size", read_trainer_command},
    {"per_device_batch_size", read_trainer_command},
    {"gradient_accumulation_steps", read_trainer_command},
    {"model_name_or_path", read_trainer_command},
    {"output_dir", read_trainer_command},
    {"micro_batch_size", read_megatron_command},
});

CommandReader reader_of(const Launch& launch, const Flags& flags) {
  const bool is_tool = !launch.action.empty();
  for (const Program& program : kPrograms) {
    const bool matches = is_tool ? launch.program == program.part ||
                                       (program.part.size() > 5 &&
                                        launch.program.find(program.part) != std::string::npos)
                                 : program.part.size() >= 5 && program.part != "megatron" &&
                                       program.part != "swift" && program.part != "axolotl" &&
                                       launch.program.find(program.part) != std::string::npos;
    if (matches) return program.read;
  }
  if (launch.program.find("pretrain_") != std::string::npos && flags.tree.find("num_layers"))
    return read_megatron_command;
  for (const TellingFlag& telling : kTellingFlags) {
    const auto is_it = [&](const UnresolvedFlag& flag) { return flag.key == telling.key; };
    if (value_at(flags.tree, telling.key) != nullptr ||
        std::any_of(flags.unresolved.begin(), flags.unresolved.end(), is_it))
      return telling.read;
  }
  return read_own_command;
}

// Readers of scripts that are nobody's in particular; the others know their program's defaults.
bool reads_any_script(CommandReader read, const CommandReading& reading) {
  return reading.launch.action.empty() && !is_known_diffusion_script(reading) &&
         (read == read_trainer_command || read == read_own_command ||
          read == read_diffusion_command || read == read_llama_factory_command);
}

// "read where another key asks for it" is no reason to ignore a value that is unknown.
bool is_ignored(FileFormat format, const std::string& key) {
  const auto is_on_list = [&](const std::string& path) {
    for (const FileFormat list : {format, FileFormat::kCommandLine}) {
      const std::optional<std::string_view> reason = harmless_reason(list, path);
      if (reason && !reason->starts_with("read")) return true;
    }
    return false;
  };
  // A section that is on the list covers what stands in it.
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
    if (is_on_list(key.substr(0, dot))) return true;
  }
  return is_on_list(key);
}

void name_unresolved(const KeyRecorder& recorder, CommandReading& reading) {
  ParsedFile& parsed = reading.parsed;
  for (const UnresolvedFlag& flag : reading.flags.unresolved) {
    if (flag.key.empty()) {
      // $PRECISION_ARGS says by its name what it may hold.
      parsed.unread.push_back({parsed.file, flag.value,
                               std::string(concern_of(flag.value, Node::string("set"))), "",
                               flag.value, ""});
      continue;
    }
    std::string key = flag.key;
    for (const auto& [renamed, was] : reading.renamed) {
      if (was == key) key = renamed;
    }
    const bool is_known = recorder.looked_up().contains(key);
    if (!is_known && (is_ignored(parsed.format, key) || is_ignored(parsed.format, flag.key)))
      continue;
    UnreadKey unread{parsed.file, flag.key,   std::string(concern_of(key, Node::string("set"))),
                     "",          flag.value, ""};
    // The file that would say everything.
    if (key == "config" || key == "config_file" || key == "c") unread.concerns = "model";
    for (const Field& field : fields_of(parsed.format)) {
      if (field.file == key) unread.decides = field.job;
    }
    // A directory or a seed that a reader looks at to recognise its file.
    if (unread.concerns.empty() && is_ignored(parsed.format, key)) continue;
    parsed.unread.push_back(std::move(unread));
  }
  for (const std::string& key : reading.flags.unreadable) {
    if (!is_ignored(parsed.format, key))
      parsed.unread.push_back(
          {parsed.file, key, std::string(concern_of(key, Node::string("set"))), "", "", ""});
  }
}

void drop_harmless(CommandReading& reading) {
  const std::vector<std::string>& withheld = reading.parsed.named_sections;
  std::erase_if(reading.parsed.unread, [&](const UnreadKey& unread) {
    return harmless_reason(FileFormat::kCommandLine, unread.key).has_value() &&
           std::find(withheld.begin(), withheld.end(), unread.key) == withheld.end();
  });
  for (UnreadKey& unread : reading.parsed.unread) {
    for (const auto& [renamed, was] : reading.renamed) {
      if (unread.key == renamed) unread.key = was;
    }
  }
}

std::vector<ParsedFile> read_launch(const ShellScript& script, const ShellCommand& command,
                                    const Launch& launch, const std::string& file) {
  CommandReading reading{command, script, launch, read_flags(launch.arguments, file), file, {},
                         {},      {},     {}};
  reading.parsed.file = file;
  reading.parsed.format = FileFormat::kCommandLine;
  reading.parsed.content = Node::map();
  const KeyRecorder recorder;
  refuse_other_purpose(reading);
  lay_kohya_config_under(reading);
  CommandReader read = reader_of(launch, reading.flags);
  ScriptText text;
  if (reads_any_script(read, reading)) {
    text = load_script_text(reading);
    reading.has_script = !text.path.empty();
    reading.follows_trl = text.follows_trl;
    reading.makes_optimizer = text.makes_optimizer;
    lay_defaults_under(text, reading);
    read = reader_of(launch, reading.flags);
  }
  read(reading);
  leave_script_open(text, reading);
  // The other programs say with a flag of their own whether they train adapters.
  if (read == read_trainer_command || read == read_own_command || read == read_diffusion_command)
    leave_unread_adapters_open(reading);
  if (read == read_trainer_command || read == read_own_command) {
    leave_unnamed_open(reading);
    leave_batch_open(reading);
    leave_text_tower_open(reading);
  }
  drop_harmless(reading);
  name_unresolved(recorder, reading);
  name_stray_flags(reading);
  reading.parsed.is_command_line = true;
  reading.parsed.assumptions.insert(reading.parsed.assumptions.begin(), script.notes.begin(),
                                    script.notes.end());
  std::vector<ParsedFile> files = std::move(reading.others);
  for (ParsedFile& launched : read_launcher_settings(reading)) files.push_back(std::move(launched));
  files.push_back(std::move(reading.parsed));
  return files;
}

struct Candidate {
  const ShellCommand* command;
  Launch launch;
};

// `all`: also those whose names say that they do something else.
std::vector<Candidate> training_commands(const ShellScript& script, bool all) {
  std::vector<Candidate> found;
  for (const ShellCommand& command : script.commands) {
    if (std::optional<Launch> launch = find_launch(command))
      found.push_back({&command, std::move(*launch)});
  }
  // Where some are named for training, the others prepare or evaluate.
  const auto trains = [](const Candidate& one) { return one.launch.is_training; };
  if (!all && std::any_of(found.begin(), found.end(), trains))
    std::erase_if(found, [&](const Candidate& one) { return !trains(one); });
  return found;
}

std::string lines_of(const std::vector<Candidate>& candidates) {
  constexpr std::size_t kMaxNamed = 20;
  std::string lines;
  for (std::size_t i = 0; i < std::min(candidates.size(), kMaxNamed); ++i)
    lines += fmt::format("{}{}", i == 0 ? "" : ", ", candidates[i].command->line);
  return candidates.size() > kMaxNamed ? lines + ", ..." : lines;
}

// "train.sh" and 12 of "train.sh:12"; 0 without a line.
std::pair<std::string, int> path_and_line(const std::string& path) {
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos) return {path, 0};
  const std::optional<int> line = parse_number<int>(std::string_view(path).substr(colon + 1));
  return line && *line > 0 ? std::pair(path.substr(0, colon), *line) : std::pair(path, 0);
}

}  // namespace

std::vector<ParsedFile> read_command_line(const std::vector<std::string>& words) {
  ShellScript script;
  script.commands.push_back(command_of(words));
  const std::optional<Launch> launch = find_launch(script.commands.front());
  if (!launch) {
    throw Error(ErrorKind::kInput,
                fmt::format("command line: {} starts no training that can be read; {}",
                            words.empty() ? "nothing" : words.front(), kKnownPrograms));
  }
  return read_launch(script, script.commands.front(), *launch, kWords);
}

std::vector<ParsedFile> read_script_text(std::string_view text, const std::string& file, int line) {
  ShellScript script = read_shell(text, file);
  join_flag_lines(file, script);
  std::vector<Candidate> candidates = training_commands(script, line > 0);
  if (candidates.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no command in it starts a training; {}", file, kKnownPrograms));
  }
  if (line > 0) {
    const std::string lines = lines_of(candidates);
    std::erase_if(candidates, [&](const Candidate& one) { return one.command->line != line; });
    if (candidates.empty()) {
      throw Error(ErrorKind::kInput, fmt::format("{}:{}: no training command starts there; lines "
                                                 "with one: {}",
                                                 file, line, lines));
    }
  }
  if (candidates.size() > 1 && line == 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: it has {} training commands, in lines {}; choose one with "
                            "--from {}:{}",
                            file, candidates.size(), lines_of(candidates), file,
                            candidates.front().command->line));
  }
  const Candidate& chosen = candidates.front();
  return read_launch(script, *chosen.command, chosen.launch,
                     fmt::format("{}:{}", file, chosen.command->line));
}

bool is_script_path(const std::string& path) {
  const std::string file = path_and_line(path).first;
  return file.ends_with(".sh") || file.ends_with(".bash") || file.ends_with(".slurm") ||
         file.ends_with(".sbatch");
}

std::vector<ParsedFile> read_script(const std::string& path) {
  const auto [file, line] = path_and_line(path);
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; check the path", file));
  const ShellLimits limits;
  std::string text(limits.max_text_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return read_script_text(text, file, line);
}

namespace {

// A file of kohya's scripts is read as the command that names it.
std::optional<std::vector<ParsedFile>> read_kohya_file(const std::string& path) {
  if (!path.ends_with(".toml")) return std::nullopt;
  const Node tree = load_document(path);
  if (!is_kohya_config(tree)) return std::nullopt;
  ShellScript script;
  script.commands.push_back(command_of(kohya_command(tree, path)));
  const std::optional<Launch> launch = find_launch(script.commands.front());
  if (!launch) return std::nullopt;
  return read_launch(script, script.commands.front(), *launch, path);
}

}  // namespace

std::vector<ParsedFile> read_source(const std::string& path) {
  if (is_script_path(path)) return read_script(path);
  if (std::optional<std::vector<ParsedFile>> files = read_kohya_file(path))
    return std::move(*files);
  return read_path(path);
}

std::vector<ParsedFile> read_sources(const std::vector<std::string>& paths) {
  std::vector<ParsedFile> files;
  for (const std::string& path : paths) {
    for (ParsedFile& parsed : read_source(path)) files.push_back(std::move(parsed));
  }
  return files;
}

}  // namespace memfathom
