// Reading back the canonical text of a convolution query: the form in which queries travel to the
// planner's process.
#pragma once

#include <string_view>

#include "core/workspace.h"

namespace memfathom {

// The query whose to_string() is `text`. Throws Error(kInput) for any other text.
ConvolutionQuery parse_convolution_query(std::string_view text);

}  // namespace memfathom
