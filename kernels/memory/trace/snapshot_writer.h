// Snapshot writer: a recorded step as a file that PyTorch's memory_viz page opens.
#pragma once

#include <iosfwd>

#include "kernels/memory/trace/trace.h"

namespace memfathom {

// Replays the trace through the caching allocator with its defaults and writes the keys of
// torch.cuda.memory._snapshot() as a pickle of protocol 2: the segments at the end, and the history
// with the line, module and operation of every allocation as its frames. Workspaces, which a replay
// adds for a GPU, are not part of it.
void write_snapshot(const Trace& trace, std::ostream& output);

}  // namespace memfathom
