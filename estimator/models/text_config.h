// Text part: the language model inside a config that has more beside it.
#pragma once

#include <optional>

#include "core/document.h"

namespace memfathom {

// `text_config`, or the config itself where its keys stand at the top (Qwen2-VL), under the name of
// the family it is and with the library's defaults where published configs leave them out. Nothing
// when that family is not known.
std::optional<Node> text_part(const Node& config);

}  // namespace memfathom
