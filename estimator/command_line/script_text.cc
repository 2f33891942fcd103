#include "estimator/command_line/script_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>
#include <optional>

#include "core/error.h"
#include "estimator/command_line/reading.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxScript = std::size_t{1} << 20;
constexpr std::size_t kMaxCall = 4000;  // characters of one call
constexpr std::size_t kMaxDefaults = 500;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

// What stands between the parenthesis at `open` and its partner.
std::string_view inside(std::string_view text, std::size_t open) {
  int depth = 0;
  char quote = '\0';
  const std::size_t end = std::min(text.size(), open + kMaxCall);
  for (std::size_t i = open; i < end; ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth == 0) return text.substr(open + 1, i - open - 1);
    }
  }
  return {};
}

// Up to a comma or comment outside of quotes and brackets.
std::string_view first_item(std::string_view text) {
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth < 0) return trimmed(text.substr(0, i));
    } else if (depth == 0 && (c == ',' || c == '#' || c == '\n')) {
      return trimmed(text.substr(0, i));
    }
  }
  return trimmed(text);
}

// A number, True, False, a text or a list of those; no expressions, no None.
std::optional<Node> literal(std::string_view text, const std::string& file) {
  if (text.starts_with('[') && text.ends_with(']')) {
    Node list = value_of_word(std::string(text), file);
    return list.is_list() && !list.items().empty() ? std::optional(std::move(list)) : std::nullopt;
  }
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'')) {
    if (text.back() != text.front()) return std::nullopt;
    const std::string_view content = text.substr(1, text.size() - 2);
    if (content.empty() || content.find(text.front()) != std::string_view::npos)
      return std::nullopt;
    return Node::string(std::string(content));
  }
  if (text == "True" || text == "False") return Node::boolean(text == "True");
  const bool is_number = !text.empty() &&
                         text.find_first_not_of("0123456789.eE+-_") == std::string_view::npos &&
                         std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  if (!is_number) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  return value_of_word(digits, file);
}

std::optional<Node> default_in(std::string_view call, const std::string& file) {
  constexpr std::string_view kDefault = "default";
  for (std::size_t at = call.find(kDefault); at != std::string_view::npos;
       at = call.find(kDefault, at + 1)) {
    if (at > 0 && is_name_character(call[at - 1])) continue;
    std::string_view rest = trimmed(call.substr(at + kDefault.size()));
    const bool is_made = rest.starts_with("_factory");  // default_factory=lambda: ["q_proj"]
    if (is_made) rest = trimmed(rest.substr(std::string_view("_factory").size()));
    if (!rest.starts_with('=')) continue;
    rest = trimmed(rest.substr(1));
    if (is_made && !rest.starts_with("lambda")) continue;
    if (is_made) rest = trimmed(rest.substr(std::min(rest.find(':') + 1, rest.size())));
    return literal(first_item(rest), file);
  }
  return std::nullopt;
}

void add(std::string name, std::optional<Node> value, ScriptText& script) {
  if (!value || name.empty() || script.defaults.size() >= kMaxDefaults) return;
  std::replace(name.begin(), name.end(), '-', '_');
  script.defaults.emplace_back(std::move(name), std::move(*value));
}

// parser.add_argument("--batch_size", type=int, default=4)
void read_arguments(std::string_view python, const std::string& file, ScriptText& script) {
  constexpr std::string_view kCall = "add_argument(";
  for (std::size_t at = python.find(kCall); at != std::string_view::npos;
       at = python.find(kCall, at + 1)) {
    const std::string_view call = inside(python, at + kCall.size() - 1);
    const std::size_t dashes = call.find("--");
    if (dashes == std::string_view::npos) continue;
    std::size_t end = dashes + 2;
    while (end < call.size() && (is_name_character(call[end]) || call[end] == '-')) ++end;
    const std::string name(call.substr(dashes + 2, end - dashes - 2));
    if (call.find("store_true") != std::string_view::npos) script.switches.push_back(name);
    add(name, default_in(call, file), script);
  }
}

// "    batch_size: int = 4," and "    batch_size: int = field(default=4, ...)"
void read_annotated(std::string_view python, const std::string& file, ScriptText& script) {
  for (std::size_t start = 0; start < python.size();) {
    const std::size_t end = std::min(python.find('\n', start), python.size());
    const std::string_view line = python.substr(start, end - start);
    const std::size_t at = start;
    start = end + 1;
    const std::string_view text = trimmed(line);
    if (text.empty() || std::islower(static_cast<unsigned char>(text.front())) == 0 ||
        line.front() != ' ')
      continue;
    std::size_t name_end = 0;
    while (name_end < text.size() && is_name_character(text[name_end])) ++name_end;
    if (name_end >= text.size() || text[name_end] != ':') continue;
    const std::size_t equals = text.find('=', name_end);
    if (equals == std::string_view::npos || text.find('(') < equals) continue;
    const std::string_view value = trimmed(text.substr(equals + 1));
    const std::string name(text.substr(0, name_end));
    if (value.starts_with("field(")) {
      const std::size_t open = python.find("field(", at) + std::string_view("field(").size() - 1;
      add(name, default_in(inside(python, open), file), script);
    } else {
      add(name, literal(first_item(value), file), script);
    }
  }
}

// "batch_size = 12" at the left margin: nanoGPT's way, whose configurator replaces them.
void read_globals(std::string_view python, const std::string& file, ScriptText& script) {
  for (std::size_t start = 0; start < python.size();) {
    const std::size_t end = std::min(python.find('\n', start), python.size());
    const std::string_view line = python.substr(start, end - start);
    start = end + 1;
    std::size_t name_end = 0;
    while (name_end < line.size() && is_name_character(line[name_end])) ++name_end;
    const std::string_view rest = trimmed(line.substr(name_end));
    if (name_end == 0 || !rest.starts_with('=') || rest.starts_with("==") ||
        std::islower(static_cast<unsigned char>(line.front())) == 0)
      continue;
    add(std::string(line.substr(0, name_end)), literal(first_item(trimmed(rest.substr(1))), file),
        script);
  }
}

// Switches of adapters: off by default, they say that the script trains without.
bool is_adapter_switch(std::string_view name) {
  return name == "use_peft" || name == "use_lora" || name == "lora_enable" ||
         name == "use_peft_lora" || name == "lora";
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_given(const CommandReading& reading, const std::string& name) {
  const auto is_it = [&](const UnresolvedFlag& one) { return one.key == name; };
  return reading.flags.tree.find(name) != nullptr ||
         std::any_of(reading.flags.unresolved.begin(), reading.flags.unresolved.end(), is_it);
}

// Numbers and names that every script has: adam_weight_decay_text_encoder, save_model_epochs.
bool is_of_no_size(std::string_view name) {
  for (const char* part : {"weight_decay", "learning_rate", "_lr",
                           "epoch",        "save",          "_steps",
                           "prob",         "seed",          "interval",
                           "ratio",        "alpha",         "scale",
                           "beta",         "name",          "path",
                           "_dir",         "interpolation", "log",
                           "eval",         "valid",         "token_abstraction"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(kMaxScript, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

bool has_option_for(const ScriptText& script, std::string_view concerns) {
  const auto is_concerned = [&](std::string_view name) {
    return concern_of(name, Node::string("set")) == concerns;
  };
  return std::any_of(script.switches.begin(), script.switches.end(), is_concerned) ||
         std::any_of(script.defaults.begin(), script.defaults.end(), [&](const auto& one) {
           return one.second.is_bool() && !one.second.as_bool() && is_concerned(one.first);
         });
}

ScriptText read_script_text_of(std::string_view python, const std::string& file) {
  ScriptText script;
  script.path = file;
  read_arguments(python, file, script);
  read_annotated(python, file, script);
  if (script.defaults.empty() || contains(python, "exec(open(")) read_globals(python, file, script);
  script.makes_adapters = contains(python, "get_peft_model(") || contains(python, "LoraConfig(");
  script.follows_trl = contains(python, "from trl ") &&
                       (contains(python, "TrlParser") || contains(python, "ModelConfig"));
  script.makes_optimizer = contains(python, "AdamW(") && !contains(python, "Trainer(");
  script.deeds = deeds_in(python);
  for (const char* few : {"load_in_8bit=True", "load_in_4bit=True", "load_in_8bit = True",
                          "load_in_4bit = True", "\"load_in_4bit\": True"})
    script.loads_few_bits = script.loads_few_bits || contains(python, few);
  return script;
}

ScriptText load_script_text(const CommandReading& reading) {
  std::string program = reading.launch.program;
  if (!program.ends_with(".py")) {
    if (program.find('/') != std::string::npos) return {};
    std::replace(program.begin(), program.end(), '.', '/');
    program += ".py";
  }
  const std::optional<std::string> path = find_named_file(reading, program);
  if (!path) return {};
  return read_script_text_of(text_of(*path), *path);
}

namespace {

// Lays those values that `counts` takes under the flags, and says so.
void lay_under(const ScriptText& script, CommandReading& reading,
               const std::function<bool(const std::string&, const Node&)>& counts) {
  std::string said;
  for (const auto& [name, value] : script.defaults) {
    if (is_given(reading, name)) continue;
    if (is_adapter_switch(name) && value.is_bool() && !value.as_bool()) {
      reading.flags.tree.set(name, value);
      continue;
    }
    if (!counts(name, value) || is_of_no_size(name) ||
        harmless_reason(FileFormat::kCommandLine, name))
      continue;
    reading.flags.tree.set(name, value);
    reading.script_defaults.push_back(name);
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", name, word_of(value));
  }
  if (!said.empty())
    reading.assume(fmt::format("{}: what it does not say is as {} has it: {}", reading.file,
                               script.path, said));
}

bool has_concern(const std::string& name, const Node& value) {
  return !concern_of(name, value).empty();
}

}  // namespace

void lay_defaults_under(const ScriptText& script, CommandReading& reading) {
  lay_under(script, reading, has_concern);
}

void lay_python_settings_under(const std::string& named, CommandReading& reading) {
  const std::optional<std::string> path = find_named_file(reading, named);
  if (!path) return;
  ScriptText settings;
  settings.path = *path;
  read_globals(text_of(*path), *path, settings);
  // They overrule what the script has by default.
  for (const auto& [name, value] : settings.defaults) {
    if (reading.is_script_default(name)) reading.flags.tree.erase(name);
  }
  // Each number in them may be one of the model's, as nanoGPT's n_embd.
  lay_under(settings, reading, [](const std::string& name, const Node& value) {
    return value.is_number() || has_concern(name, value);
  });
}

void leave_script_open(const ScriptText& script, CommandReading& reading) {
  const std::string& program = reading.launch.program;
  if (script.makes_adapters && !reading.decides("training.lora") &&
      !has_option_for(script, "adapters"))
    reading.leave_open(program, "adapters",
                       fmt::format("{}: {} makes adapters itself; full training is counted",
                                   reading.file, script.path));
  leave_deeds_open(script, reading);
  if (script.loads_few_bits && !reading.decides("training.quantization") &&
      !has_option_for(script, "precision"))
    reading.leave_open(program, "precision",
                       fmt::format("{}: {} loads weights in 4 or 8 bits itself; whole ones are "
                                   "counted (--load-in-4bit, --load-in-8bit)",
                                   reading.file, script.path));
}

}  // namespace memfathom
