#include "cli/global_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/suggest.h"

namespace memfathom {
namespace {

Format parse_format(std::string_view name) {
  const std::optional<Format> format = enum_from_name<Format>(name);
  if (!format) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--format is \"{}\"; {}", name, suggestion(name, kNamesOf<Format>)));
  }
  return *format;
}

Language parse_language(std::string_view name) {
  const std::optional<Language> language = enum_from_name<Language>(name);
  if (!language) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--lang is \"{}\"; {}", name, suggestion(name, kNamesOf<Language>)));
  }
  return *language;
}

bool takes_value(std::string_view name) {
  return name == "--db" || name == "--format" || name == "--output" || name == "--lang";
}

// "--batch_size=4_5" -> "--batch-size=4_5".
std::string with_hyphens(std::string word) {
  if (word.starts_with("--")) {
    const auto name_end = std::find(word.begin(), word.end(), '=');
    std::replace(word.begin(), name_end, '_', '-');
  }
  return word;
}

// Where the user's own command line begins after `capture`: train.py, or -m module.
bool begins_script(const std::string& word) {
  return word == "-m" || (!word.starts_with("-") && word.ends_with(".py"));
}

bool* flag_of(GlobalOptions& global, std::string_view word) {
  if (word == "--quiet" || word == "-q") return &global.quiet;
  if (word == "--verbose" || word == "-v") return &global.verbose;
  if (word == "--no-color") return &global.no_color;
  if (word == "--help" || word == "-h") return &global.help;
  if (word == "--version") return &global.version;
  return nullptr;
}

}  // namespace

std::span<const std::string_view> global_option_names() {
  static constexpr std::array<std::string_view, 9> kNames{"--db",    "--format",  "--output",
                                                          "--quiet", "--verbose", "--no-color",
                                                          "--lang",  "--help",    "--version"};
  return kNames;
}

CommandLine parse_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {  // what follows belongs to somebody else
      line.arguments.insert(line.arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                            words.end());
      break;
    }
    if (line.command == "capture" && begins_script(words[i])) {
      line.arguments.emplace_back("--");
      line.arguments.insert(line.arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                            words.end());
      break;
    }
    const std::string word = with_hyphens(words[i]);
    if (bool* const flag = flag_of(line.global, word)) {
      *flag = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (takes_value(name)) {
      std::string value;
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
      } else if (i + 1 < words.size()) {
        value = words[++i];
      }
      if (value.empty())
        throw Error(ErrorKind::kUsage, fmt::format("{} needs a value; write {} VALUE", name, name));
      if (name == "--db") line.global.db = value;
      if (name == "--output") line.global.output = value;
      if (name == "--format") line.global.format = parse_format(value);
      if (name == "--lang") line.global.language = parse_language(value);
      continue;
    }
    if (!line.command.empty()) {
      line.arguments.push_back(word);
    } else if (word.starts_with("-") || word.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("\"{}\" is not an option of memfathom; {}", word,
                                                 suggestion(word, global_option_names())));
    } else {
      line.command = word;
    }
  }
  return line;
}

}  // namespace memfathom
