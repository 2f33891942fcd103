#include "core/document_path.h"

#include <algorithm>
#include <cctype>

namespace memfathom {

const Node* value_at(const Node& tree, std::string_view dotted_path) {
  const Node* node = &tree;
  while (!dotted_path.empty()) {
    const std::size_t end = std::min(dotted_path.find('.'), dotted_path.size());
    node = node->is_map() ? node->find(dotted_path.substr(0, end)) : nullptr;
    if (node == nullptr) return nullptr;
    dotted_path.remove_prefix(std::min(end + 1, dotted_path.size()));
  }
  return node->is_null() ? nullptr : node;
}

std::string text_at(const Node& tree, std::string_view dotted_path, std::string_view otherwise) {
  const Node* value = value_at(tree, dotted_path);
  if (value != nullptr && value->is_number()) return value->shown();  // precision: 16
  return value != nullptr && value->is_string() ? value->as_string() : std::string(otherwise);
}

bool is_true_at(const Node& tree, std::string_view dotted_path) {
  const Node* value = value_at(tree, dotted_path);
  if (value == nullptr || value->is_list() || value->is_map()) return false;
  if (value->is_bool()) return value->as_bool();
  // JSON that a command line wrote, and YAML 1.1, have words for it.
  std::string word = value->is_string() ? value->as_string() : value->shown();
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* on : {"true", "yes", "on", "y", "1"}) {
    if (word == on) return true;
  }
  for (const char* off : {"", "false", "no", "off", "n", "none", "null", "auto", "0", "0.0"}) {
    if (word == off) return false;
  }
  if (word.find('$') != std::string::npos || word.find('{') != std::string::npos) return false;
  value->refuse("it must be true or false");
}

}  // namespace memfathom
