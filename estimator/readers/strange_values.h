// Values that a setting of memory cannot have: a reader that looks for the ones it knows would take
// its default.
#pragma once

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// A number of machines, GPUs or bits that is none is refused (Error(kInput)); a type, a strategy or
// a way of checkpointing that is not known leaves the verdict open.
void check_values(ParsedFile& parsed);

}  // namespace memfathom
