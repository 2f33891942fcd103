// Patch: changes of a job document, as dotted keys and values.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"

namespace memfathom {

struct KeyChange {
  std::string key;  // "training.batch_size"
  Node value;
};

using Patch = std::vector<KeyChange>;

// The document with every change made, in order; a change to null takes the key away.
Node patched(Node document, const Patch& patch);
// The changes as a tree: {training: {batch_size: 3}}. A way through a list stays one key, as --set
// has it.
Node patch_tree(const Patch& patch);
// The changes of a tree such as a file of `compare --patch`: its leaves; lists are leaves.
Patch patch_of(const Node& tree);
Patch joined(Patch first, const Patch& second);

}  // namespace memfathom
