#include "core/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/lowercase.h"

namespace memfathom {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Whether YAML reads the unquoted word as a string.
bool is_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords{"null", "true", "false", "yes", "no",
                                                           "on",   "off",  "y",     "n",   "nan"};
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  const std::string lower = lowercase(std::string(text));
  if (std::find(kWords.begin(), kWords.end(), lower) != kWords.end()) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  });
}

std::string number_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  // Whole doubles keep their ".0": 1 and 1.0 are different values of a tree.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string scalar_text(const Node& node) {
  switch (node.type()) {
    case Node::Type::kBool: return node.as_bool() ? "true" : "false";
    case Node::Type::kInt: return fmt::format("{}", node.as_int());
    case Node::Type::kDouble: return number_text(node.unchecked_number());
    case Node::Type::kString:
      return is_plain(node.as_string()) ? node.as_string() : quoted(node.as_string());
    case Node::Type::kNull:
    case Node::Type::kList:
    case Node::Type::kMap: break;
  }
  return "null";
}

bool is_scalar(const Node& node) { return !node.is_map() && !node.is_list(); }

// A value that fits after "key: " or "- " on the same line.
bool is_short(const Node& node) {
  if (node.is_map()) return node.entries().empty();
  return is_scalar(node) || std::all_of(node.items().begin(), node.items().end(), is_scalar);
}

std::string short_text(const Node& node) {
  if (node.is_map()) return "{}";
  if (is_scalar(node)) return scalar_text(node);
  std::string text = "[";
  for (const Node& item : node.items()) text += (text.size() > 1 ? ", " : "") + scalar_text(item);
  return text + "]";
}

void write(const Node& node, std::size_t indent, std::string& text) {
  const bool map = node.is_map();
  for (const Node& child : map ? node.entries() : node.items()) {
    text.append(indent, ' ');
    const std::string key(child.key());
    text += map ? (is_plain(key) ? key : quoted(key)) + ":" : "-";
    if (is_short(child)) {
      text += " " + short_text(child) + "\n";
    } else {
      text += "\n";
      write(child, indent + 2, text);
    }
  }
}

nlohmann::ordered_json ordered(const Node& node) {
  nlohmann::ordered_json json;
  if (node.is_map()) {
    json = nlohmann::ordered_json::object();
    for (const Node& entry : node.entries()) json[std::string(entry.key())] = ordered(entry);
  } else if (node.is_list()) {
    json = nlohmann::ordered_json::array();
    for (const Node& item : node.items()) json.push_back(ordered(item));
  } else {
    json = nlohmann::ordered_json::parse(to_json(node).dump());
  }
  return json;
}

}  // namespace

std::string to_yaml(const Node& node) {
  if (is_short(node)) return short_text(node) + "\n";
  std::string text;
  write(node, 0, text);
  return text;
}

std::string to_indented_json(const Node& node) {
  return ordered(node).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace memfathom
