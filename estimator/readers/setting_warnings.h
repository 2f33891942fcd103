// Setting warnings: settings of a job that its model does not read, or that its library would
// refuse.
//
// The estimate is of the job as it is written; these sentences say what a run would do with it.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/job/job.h"

namespace memfathom {

// `job` is the document's, resolved.
std::vector<std::string> setting_warnings(const Node& document, const Job& job);

}  // namespace memfathom
