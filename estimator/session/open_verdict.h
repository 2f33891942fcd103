// Open verdict: "does not fit" where files of other tools leave open what decides it.
#pragma once

#include "core/document.h"
#include "estimator/answer/estimate.h"
#include "estimator/readers/merge.h"

namespace memfathom {

// The number of GPUs of a sharded job and the length of its samples are assumed where no file says
// them. Verdicts that more GPUs or shorter samples would change become undecided, with the reason.
void leave_what_is_not_said_open(const Node& document, const MergedJob& files, Estimate& estimate);

}  // namespace memfathom
