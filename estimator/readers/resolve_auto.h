// Resolve: what files leave open ("auto", a whole batch without its parts), decided as the
// integration does it.
#pragma once

#include <vector>

#include "core/document.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// To be called when the job is complete, flags included: bucket sizes come from the model's hidden
// size, the micro-batch from the whole batch, accumulation and the number of GPUs. What had to be
// assumed and what contradicts goes to `notes`.
void resolve_auto_values(const std::vector<ParsedFile>& files, Node& document, MergedJob& notes);

}  // namespace memfathom
