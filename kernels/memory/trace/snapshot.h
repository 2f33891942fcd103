// Snapshot: a file of torch.cuda.memory._dump_snapshot as a trace.
#pragma once

#include <string>
#include <string_view>

#include "kernels/memory/trace/trace.h"

namespace memfathom {

// Whether a file begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view beginning);

// The history of the device that has the most events. What was alive before the history began is
// allocated first, in phase `load`. Phases follow from the Python frames of each event, as do
// operations and lines. Throws Error(kInput).
Trace read_snapshot(std::string_view bytes, const std::string& name);

}  // namespace memfathom
