#include "estimator/advise/patch.h"

#include <fmt/format.h>

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

}  // namespace

Node patched(Node document, const Patch& patch) {
  for (const KeyChange& change : patch) document.assign(change.key, change.value);
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
