#include "estimator/command_line/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/key_recorder.h"
#include "estimator/readers/named_files.h"
#include "estimator/readers/strange_values.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

// A folder that only has the model's name is none.
bool may_describe_model(const fs::path& path) {
  std::error_code ignored;
  return !fs::is_directory(path, ignored) || describes_a_model(path);
}

// Lays the flags over the tree of a file, key by key.
void lay_over(const Node& flags, const std::string& prefix, Node& tree) {
  for (const Node& entry : flags.entries()) {
    const std::string key = prefix + std::string(entry.key());
    if (entry.is_map()) {
      lay_over(entry, key + ".", tree);
    } else {
      tree.assign(key, entry);
    }
  }
}

}  // namespace

std::string word_of(const Node& value) {
  return value.is_string() ? value.as_string() : value.shown();
}

void CommandReading::set_default(std::string_view key, Node value) {
  if (flag(key) == nullptr) flags.tree.assign(key, std::move(value));
}

bool CommandReading::is_script_default(std::string_view key) const {
  std::string_view was = key;
  for (const auto& [now, before] : renamed) {
    if (now == key) was = before;
  }
  return std::find(script_defaults.begin(), script_defaults.end(), was) != script_defaults.end();
}

bool CommandReading::decides(std::string_view key) const {
  const auto of = [&](const ParsedFile& file_of) {
    return std::any_of(file_of.settings.begin(), file_of.settings.end(), [&](const KeyChange& one) {
      return std::string_view(one.key).starts_with(key);
    });
  };
  return of(parsed) || std::any_of(others.begin(), others.end(), of);
}

void CommandReading::train_reward_model() {
  parsed.set("training.preference.method", Node::string("dpo"));
  parsed.set("training.preference.reference", Node::string("none"));
  leave_out(
      fmt::format("{}: a reward model's head of one output; the language model's own head and loss "
                  "are counted, which take more",
                  file));
}

void CommandReading::rename(std::span<const Spelling> spellings) {
  for (const Spelling& spelling : spellings) {
    const auto is_it = [&](const UnresolvedFlag& one) { return one.key == spelling.flag; };
    if (std::any_of(flags.unresolved.begin(), flags.unresolved.end(), is_it))
      renamed.emplace_back(spelling.key, spelling.flag);
    const Node* value = flags.tree.find(spelling.flag);
    if (value == nullptr) continue;
    Node kept = *value;
    flags.tree.erase(spelling.flag);
    if (flag(spelling.key) == nullptr) flags.tree.assign(spelling.key, std::move(kept));
    renamed.emplace_back(spelling.key, spelling.flag);
  }
}

void read_as(FileFormat format, CommandReading& reading) {
  ParsedFile before = std::move(reading.parsed);
  const std::string deepspeed =
      deepspeed_keys(format).empty() ? "" : text_at(reading.flags.tree, "deepspeed");
  reading.parsed = read_tree(reading.flags.tree, format);
  ParsedFile& parsed = reading.parsed;
  parsed.file = before.file;
  if (!before.base_model.empty()) parsed.base_model = before.base_model;
  if (!parsed.base_model.empty()) parsed.base_model = model_name_of(parsed.base_model, reading);
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(parsed.settings, before.settings);
  append(parsed.assumptions, before.assumptions);
  append(parsed.not_modelled, before.not_modelled);
  append(parsed.unread, before.unread);
  append(parsed.named_sections, before.named_sections);
  if (!deepspeed.empty()) add_deepspeed_file(deepspeed, "deepspeed", reading);
}

void read_known_flags(void (*read)(CommandReading&), CommandReading& reading) {
  reading.parsed.content = reading.flags.tree;
  const KeyRecorder recorder;
  read(reading);
  if (!reading.parsed.base_model.empty())
    reading.parsed.base_model = model_name_of(reading.parsed.base_model, reading);
  check_values(reading.parsed);
  collect_unread_keys(recorder, reading.parsed);
}

const Node* first_flag(const CommandReading& reading,
                       std::initializer_list<std::string_view> keys) {
  const Node* found = nullptr;
  for (const std::string_view key : keys) {
    const Node* value = reading.flag(key);  // all are looked up: an unused spelling is known
    if (found == nullptr) found = value;
  }
  return found;
}

std::optional<std::string> find_named_file(const CommandReading& reading,
                                           const std::string& named) {
  if (named.empty() || named.size() > 4000) return std::nullopt;
  const fs::path found = found_from(reading.file, named);
  return found.empty() ? std::nullopt : std::optional(found.string());
}

std::optional<Node> load_named_file(const CommandReading& reading, const std::string& named) {
  const auto written = reading.script.files.find(named);
  if (written != reading.script.files.end()) return parse_document(written->second, named);
  const std::optional<std::string> path = find_named_file(reading, named);
  std::error_code ignored;
  if (!path || fs::is_directory(*path, ignored)) return std::nullopt;
  return load_document(*path);
}

void read_with_file(const std::string& path, CommandReading& reading) {
  std::optional<Node> tree = load_named_file(reading, path);
  if (!tree)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: it names {}, which is not here; start memfathom "
                            "in the folder that has it, or add --from FILE",
                            reading.file, path));
  if (!tree->is_map()) tree->refuse("a training configuration is a map of keys and values");
  // The format is the file's own, whatever the flags add.
  const FileFormat format = detect_format(*tree);
  lay_over(reading.flags.tree, "", *tree);
  reading.flags.tree = std::move(*tree);
  read_as(format, reading);
}

void add_deepspeed_file(const std::string& named, std::string_view key, CommandReading& reading) {
  if (std::optional<Node> tree = load_named_file(reading, named)) {
    reading.others.push_back(read_tree(*tree, FileFormat::kDeepSpeed));
    return;
  }
  ParsedFile naming;
  naming.file = reading.file;
  if (std::optional<ParsedFile> guessed = deepspeed_by_name(naming, named)) {
    guessed->is_command_line = true;
    reading.others.push_back(std::move(*guessed));
    return;
  }
  reading.parsed.unread.push_back(
      {reading.file, std::string(key), "sharding", "", named + ", which is not here", ""});
}

std::string model_name_of(const std::string& named, CommandReading& reading) {
  if (const std::optional<std::string> path = find_named_file(reading, named);
      path && may_describe_model(*path))
    return *path;
  const std::string_view name(named);
  const bool is_path = name.starts_with('/') || name.starts_with('.') || name.starts_with('~') ||
                       name.starts_with('$') || std::count(name.begin(), name.end(), '/') > 1;
  if (!is_path) return named;
  fs::path path = fs::path(named).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string owner = path.parent_path().filename().string();
  const std::string last = path.filename().string();
  const bool has_owner = !owner.empty() && owner.find_first_of("$~.{} ") == std::string::npos;
  std::string taken = (has_owner ? owner : std::string("local")) + "/" + last;
  reading.assume(fmt::format("{}: the model {} is not here; it is taken at its name, {}",
                             reading.file, named, taken));
  return taken;
}

}  // namespace memfathom
