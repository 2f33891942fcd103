// document_path: dotted paths into a document: "training.lora.rank".
#pragma once

#include <string>
#include <string_view>

#include "core/document.h"

namespace memfathom {

// The value at a dotted path; null if it is absent or null, or if the path leads through something
// other than a map.
const Node* value_at(const Node& tree, std::string_view dotted_path);
// The text at a path; `otherwise` if there is none.
std::string text_at(const Node& tree, std::string_view dotted_path,
                    std::string_view otherwise = "");
// Whether the value at a path is true; false for anything else.
bool is_true_at(const Node& tree, std::string_view dotted_path);

}  // namespace memfathom
