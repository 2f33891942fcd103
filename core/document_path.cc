#include "core/document_path.h"

#include <algorithm>

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
  return value != nullptr && value->is_string() ? value->as_string() : std::string(otherwise);
}

bool is_true_at(const Node& tree, std::string_view dotted_path) {
  const Node* value = value_at(tree, dotted_path);
  return value != nullptr && value->is_bool() && value->as_bool();
}

}  // namespace memfathom
