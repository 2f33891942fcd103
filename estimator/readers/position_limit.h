// Position limit: whether a job's samples are longer than its model has places for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/model_spec.h"

namespace memfathom {

// One sentence, or nothing where the length is within the limit or no limit is known.
// `model` is the document's, resolved.
std::string position_limit_warning(const Node& document, const ModelSpec& model);

// The positions of a model that has a table of them, which no longer sample can use; 0: no table.
std::int64_t table_of_positions(const ModelSpec& model);

// Files of trainers often leave the length to the data. Where none says it and the model reads
// text, the document gets the usual one, and the assumption is reported. Returns whether it did.
bool assume_length(Node& document, std::vector<std::string>& assumptions);

}  // namespace memfathom
