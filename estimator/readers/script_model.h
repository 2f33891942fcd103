// Script model: the network that a script's own YAML describes, in whatever words it has for it.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// Whether a section `model` is that of somebody's script: it has keys, and none of a job's model.
bool is_script_model(const Node* model);

// The sections that scripts put their keys under; the first is none.
std::span<const std::string_view> script_sections();
// The first of the keys that stands in any of them; null where none does.
const Node* anywhere(const Node& tree, std::initializer_list<std::string_view> keys);

// A family with its width and depth, a transformer with its heads, or a model's name.
void set_script_model(ParsedFile& parsed);

}  // namespace memfathom
