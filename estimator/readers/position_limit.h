// Position limit: whether a job's samples are longer than its model has places for.
#pragma once

#include <string>

#include "core/document.h"

namespace memfathom {

// One sentence, or nothing where the length is within the limit or no limit is known.
std::string beyond_positions(const Node& document);

}  // namespace memfathom
