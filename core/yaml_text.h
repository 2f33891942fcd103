// yaml_text: the YAML or JSON text of a tree, for configurations that users read.
#pragma once

#include <string>

#include "core/document.h"

namespace memfathom {

// Block style, two spaces per level, lists of scalars on one line. parse_yaml reads back the same
// value; strings that YAML would read as another type are quoted.
std::string to_yaml(const Node& node);

// Indented JSON in the order of the tree.
std::string to_indented_json(const Node& node);

}  // namespace memfathom
