// Dotted paths into a document: "training.lora.rank".
#pragma once

#include <string>
#include <string_view>

#include "core/document.h"

namespace memfathom {

// The value at a dotted path; null when absent, when it is null, or when the way leads through
// something that is no map.
const Node* value_at(const Node& tree, std::string_view dotted_path);
// The text there; `otherwise` where there is none.
std::string text_at(const Node& tree, std::string_view dotted_path,
                    std::string_view otherwise = "");
// Whether a true stands there; anything else is no.
bool is_true_at(const Node& tree, std::string_view dotted_path);

}  // namespace memfathom
