#include "cli/language/language.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <vector>

#include "cli/language/messages_zh.h"

namespace memfathom {
namespace {

constexpr std::string_view kValue = "{}";

bool is_utf8(std::string_view charset) {
  std::string letters;
  for (const char c : charset) {
    if (c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters == "utf8";
}

// zh, zh_CN and zh_SG; without a charset, or with UTF-8.
bool names_chinese(std::string_view locale) {
  locale = locale.substr(0, locale.find('@'));
  const std::size_t dot = std::min(locale.find('.'), locale.size());
  const std::string_view name = locale.substr(0, dot);
  if (name != "zh" && name != "zh_CN" && name != "zh_SG") return false;
  return dot == locale.size() || is_utf8(locale.substr(dot + 1));
}

// The values of `text` in the places of `pattern`'s {}; nullopt if it is another sentence. A value
// ends where what follows it in the pattern begins.
std::optional<std::vector<std::string>> values_in(std::string_view text, std::string_view pattern) {
  std::vector<std::string> values;
  std::size_t place = pattern.find(kValue);
  if (!text.starts_with(pattern.substr(0, place))) return std::nullopt;
  text.remove_prefix(std::min(place, pattern.size()));
  while (place != std::string_view::npos) {
    pattern.remove_prefix(place + kValue.size());
    place = pattern.find(kValue);
    const std::string_view after = pattern.substr(0, place);
    const bool is_last = place == std::string_view::npos;
    if (is_last && !text.ends_with(after)) return std::nullopt;
    const std::size_t end = is_last ? text.size() - after.size() : text.find(after);
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    values.emplace_back(text.substr(0, end));
    text.remove_prefix(end + after.size());
  }
  return text.empty() ? std::optional(values) : std::nullopt;
}

// {} is the next value, {2} the third one.
std::string filled_in(std::string_view message, const std::vector<std::string>& values) {
  std::string text;
  std::size_t next = 0;
  for (std::size_t at = 0; at < message.size(); ++at) {
    const bool numbered = at + 2 < message.size() && message[at + 2] == '}' &&
                          std::isdigit(static_cast<unsigned char>(message[at + 1])) != 0;
    const bool plain = message.substr(at).starts_with(kValue);
    if (message[at] != '{' || (!numbered && !plain)) {
      text += message[at];
      continue;
    }
    const std::size_t index = plain ? next++ : static_cast<std::size_t>(message[at + 1] - '0');
    if (index < values.size()) text += values[index];
    at += plain ? 1 : 2;
  }
  return text;
}

// The Chinese of exactly this message; empty if there is none.
std::string_view chinese_of(std::string_view english) {
  for (const Message& message : chinese_messages()) {
    if (message.english == english) return message.chinese;
  }
  return {};
}

}  // namespace

Language language_of_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return names_chinese(value) ? Language::kChinese : Language::kEnglish;
  }
  return Language::kEnglish;
}

std::string translated(Language language, std::string_view english) {
  if (language == Language::kEnglish) return std::string(english);
  if (const std::string_view chinese = chinese_of(english); !chinese.empty())
    return std::string(chinese);
  for (const Message& message : chinese_messages()) {
    if (message.english.find(kValue) == std::string_view::npos) continue;
    if (const auto values = values_in(english, message.english))
      return filled_in(message.chinese, *values);
  }
  return std::string(english);
}

std::string translated(Language language, std::string_view english,
                       std::initializer_list<std::string> values) {
  const std::string_view chinese =
      language == Language::kChinese ? chinese_of(english) : std::string_view();
  return filled_in(chinese.empty() ? english : chinese, values);
}

}  // namespace memfathom
