// Reading back the canonical text of a query: the form in which queries travel to the planner's
// process and stand in samples.
#pragma once

#include <string_view>

#include "core/workspace.h"

namespace memfathom {

// The query whose to_string() is `text`. Throws Error(kInput) for any other text.
ConvolutionQuery parse_convolution_query(std::string_view text);
// The same for a transform.
FftQuery parse_fft_query(std::string_view text);

}  // namespace memfathom
