#include "estimator/job/patch.h"

#include <fmt/format.h>

#include "core/document_path.h"

namespace memfathom {
namespace {

void collect(const Node& node, const std::string& prefix, Patch& patch) {
  for (const Node& entry : node.entries()) {
    const std::string key =
        prefix.empty() ? std::string(entry.key()) : fmt::format("{}.{}", prefix, entry.key());
    if (entry.is_map() && !entry.entries().empty()) {
      collect(entry, key, patch);
    } else {
      patch.push_back({key, entry});
    }
  }
}

void take_away(const std::string& key, Node& document) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos) {
    document.erase(key);
    return;
  }
  const Node* holder = value_at(document, key.substr(0, dot));
  if (holder == nullptr || !holder->is_map()) return;
  Node without = *holder;
  without.erase(key.substr(dot + 1));
  document.assign(key.substr(0, dot), std::move(without));
}

}  // namespace

Node patched(Node document, const Patch& patch) {
  for (const KeyChange& change : patch) {
    if (change.value.is_null()) {
      take_away(change.key, document);
    } else {
      document.assign(change.key, change.value);
    }
  }
  return document;
}

Node patch_tree(const Patch& patch) {
  Node tree = Node::map();
  for (const KeyChange& change : patch) {
    if (change.key.find('[') == std::string::npos) {
      tree.assign(change.key, change.value);
    } else {
      tree.set(change.key, change.value);
    }
  }
  return tree;
}

Patch patch_of(const Node& tree) {
  Patch patch;
  collect(tree, "", patch);
  return patch;
}

Patch joined(Patch first, const Patch& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace memfathom
