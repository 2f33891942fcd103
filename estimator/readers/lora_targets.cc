#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

// What follows the last dot outside parentheses and brackets: a pattern's own name of the layer.
std::string_view last_part(std::string_view pattern) {
  int depth = 0;
  for (std::size_t i = pattern.size(); i-- > 0;) {
    const char c = pattern[i];
    if (c == ')' || c == ']') ++depth;
    if (c == '(' || c == '[') --depth;
    if (depth == 0 && c == '.' && i + 1 < pattern.size() && pattern[i + 1] != '*')
      return pattern.substr(i + 1);
  }
  return pattern;
}

// "(q|k|v)_proj" as q_proj, k_proj, v_proj: one group of alternatives and what stands around it.
std::vector<std::string> alternatives(std::string_view part) {
  while (part.ends_with('$')) part.remove_suffix(1);
  const std::size_t open = part.find('(');
  const std::size_t close = part.find(')', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {std::string(part)};
  const std::string before(part.substr(0, open));
  const std::string after(part.substr(close + 1));
  std::string_view inside = part.substr(open + 1, close - open - 1);
  if (inside.starts_with("?:")) inside.remove_prefix(2);
  std::vector<std::string> names;
  while (true) {
    const std::size_t bar = inside.find('|');
    names.push_back(fmt::format("{}{}{}", before, inside.substr(0, bar), after));
    if (bar == std::string_view::npos) return names;
    inside.remove_prefix(bar + 1);
  }
}

bool is_pattern(std::string_view text) {
  return text.find_first_of("()[]|*\\^$") != std::string_view::npos;
}

}  // namespace

Node lora_targets(const Node& given) {
  if (!given.is_string()) return given;
  Node targets = Node::list();
  if (!is_pattern(given.as_string())) {
    targets.append(given);
    return targets;
  }
  for (const std::string& name : alternatives(last_part(given.as_string())))
    targets.append(Node::string(name));
  return targets;
}

}  // namespace memfathom
