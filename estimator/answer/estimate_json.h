// The JSON of an estimate (docs/contract.md §4), and of a batch line that could not be answered.
#pragma once

#include <string>

#include "core/error.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string to_json_text(const Estimate& estimate, bool indented);
// The list of suggestions alone, as JSON text: for other results that hold one.
std::string suggestions_json_text(const std::vector<Suggestion>& suggestions);
std::string error_json_line(const std::string& id, const std::string& sentence, ErrorKind kind);

}  // namespace memfathom
