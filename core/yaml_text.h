// YAML text of a tree: how configurations are handed back to people.
#pragma once

#include <string>

#include "core/document.h"

namespace memfathom {

// Block style, two spaces a level, lists of scalars in one line. parse_yaml reads it back as the
// same value; a text that YAML would take for something else stands in quotes.
std::string to_yaml(const Node& node);

// Indented JSON in the order of the tree.
std::string to_indented_json(const Node& node);

}  // namespace memfathom
