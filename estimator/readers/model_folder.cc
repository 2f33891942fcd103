#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "estimator/readers/config_keys.h"
#include "estimator/readers/formats.h"
#include "estimator/readers/named_files.h"
#include "estimator/readers/pipeline.h"
#include "estimator/readers/read_text.h"
#include "estimator/readers/recording_file.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr auto kAdapterFields = std::to_array<Field>({
    {"training.lora.rank", "r"},
    {"training.lora.targets", "target_modules"},
    {"training.lora.dropout", "lora_dropout"},
});

Node path_node(const fs::path& path) {
  return Node::string(fs::absolute(path).lexically_normal().string());
}

}  // namespace

void read_model_config(ParsedFile& parsed) {
  if (parsed.file.empty()) {
    parsed.set("model.config", parsed.content);
  } else {
    parsed.set("model.config", path_node(parsed.file));
  }
  read_stored_bits(parsed);
  const Node* dtype = value_at(parsed.content, "torch_dtype");
  if (dtype == nullptr) dtype = value_at(parsed.content, "dtype");
  if (dtype == nullptr || !dtype->is_string()) return;
  static constexpr std::array<std::string_view, 3> kKnown{"float32", "bfloat16", "float16"};
  if (std::find(kKnown.begin(), kKnown.end(), dtype->as_string()) == kKnown.end()) return;
  parsed.set("training.precision", *dtype);
}

std::span<const Field> adapter_fields() { return kAdapterFields; }

void read_adapter(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::string& type = tree.at("peft_type").as_string();
  if (type == "LORA") {
    parsed.set("training.lora.rank", Node::integer(tree.at("r").as_int(1)));
  } else {
    // The frozen weights and what flows through them are the same; what learns is small.
    const Node* rank = value_at(tree, value_at(tree, "init_r") != nullptr ? "init_r" : "r");
    const std::int64_t size = rank != nullptr && rank->is_int() ? rank->as_int(1, 1 << 20) : 1;
    parsed.set("training.lora.rank", Node::integer(size));
    leave_open(
        "peft_type", "adapters",
        fmt::format("{}: {} adapters are counted as LoRA of rank {}", parsed.file, type, size),
        parsed);
  }
  read_fields(kAdapterFields, parsed);
  if (const Node* base = value_at(tree, "base_model_name_or_path");
      base != nullptr && base->is_string())
    parsed.base_model = base->as_string();
  static constexpr std::array<std::string_view, 5> kNotModelled{
      "use_dora", "modules_to_save", "rank_pattern", "layers_to_transform",
      "trainable_token_indices"};
  list_not_modelled(kNotModelled, parsed);
}

namespace {

// A DeepSpeed configuration in a file of its own that another file names.
void add_deepspeed(const ParsedFile& parsed, std::string_view key,
                   std::vector<ParsedFile>& parsed_files) {
  const Node* deepspeed = value_at(parsed.content, key);
  if (deepspeed == nullptr || deepspeed->is_map()) return;
  const std::string& named = deepspeed->as_string();
  if (named.empty()) return;
  const fs::path path = found_from(parsed.file, named);
  if (path.empty()) {
    if (std::optional<ParsedFile> guessed = deepspeed_by_name(parsed, named)) {
      parsed_files.push_back(std::move(*guessed));
      return;
    }
  }
  parsed_files.push_back(
      read_tree(load_document(path.empty() ? named : path.string()), FileFormat::kDeepSpeed));
}

// What people have beside their configuration, and what to give instead.
void reject_by_name(const std::string& path) {
  struct Kind {
    std::string_view ending, remedy;
  };
  static constexpr auto kKinds = std::to_array<Kind>({
      {".py",
       "a script is not read; give its configuration, or say the job with flags "
       "(memfathom estimate --help)"},
      {".ini", "INI files are not supported; write the job as YAML (docs/jobs.md) or use flags"},
      {".safetensors", "these are weights; name the folder that has them and a config.json"},
      {".bin", "these are weights; name the folder that has them and a config.json"},
      {".pt", "a checkpoint of PyTorch is not read; give the model's config.json"},
      {".pth", "a checkpoint of PyTorch is not read; give the model's config.json"},
      {".gguf", "GGUF files are not read; give the config.json of the model it was made from"},
  });
  for (const Kind& kind : kKinds) {
    if (path.ends_with(kind.ending))
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", path, kind.remedy));
  }
}

std::vector<ParsedFile> read_contents(const Node& tree) {
  const FileFormat format = detect_format(tree);
  std::vector<ParsedFile> parsed_files;
  read_with_sections(tree, format, parsed_files);
  name_unread_config_keys(parsed_files.front());
  const ParsedFile first = parsed_files.front();
  for (const std::string_view key : deepspeed_keys(format)) add_deepspeed(first, key, parsed_files);
  return parsed_files;
}

std::vector<ParsedFile> read_file(const std::string& path) {
  if (is_there(path)) {
    reject_by_name(path);
    if (std::optional<ParsedFile> recorded = read_recording(path)) return {std::move(*recorded)};
  }
  return read_contents(load_document(path));
}

}  // namespace

std::vector<ParsedFile> read_text(const std::string& text, const std::string& name) {
  std::vector<ParsedFile> parsed_files = read_contents(parse_document(text, name));
  for (ParsedFile& parsed : parsed_files) {
    if (parsed.format != FileFormat::kModelConfig) continue;
    for (KeyChange& change : parsed.settings) {
      // There is no file of that name which the model could be read from later.
      if (change.key == "model.config") change.value = parsed.content;
    }
  }
  return parsed_files;
}

std::vector<ParsedFile> read_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_file(path);
  const fs::path folder(path);
  if (is_there(folder / "model_index.json")) return {read_pipeline(folder)};
  std::vector<ParsedFile> parsed_files;
  for (const char* name : {"config.json", "adapter_config.json"}) {
    if (!is_there(folder / name)) continue;
    const Node tree = load_document((folder / name).string());
    parsed_files.push_back(read_tree(tree, detect_format(tree)));
    name_unread_config_keys(parsed_files.back());
  }
  if (parsed_files.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: this folder has no config.json, adapter_config.json or "
                            "model_index.json; name a file in it",
                            path));
  }
  return parsed_files;
}

}  // namespace memfathom
