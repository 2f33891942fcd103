// Replay: runs a recorded trace through an allocator and reports the peaks of every phase.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/workspace.h"
#include "kernels/memory/allocator/allocator.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

struct SpanPeaks {
  std::string phase;
  int iteration = 0;
  Bytes allocated;
  Bytes reserved;
  Bytes active;
  Bytes requested;
  std::size_t peak_event =
      0;  // the event that reached `allocated`; the span's first event if it was reached before
};

struct ReplayResult {
  std::vector<SpanPeaks> spans;    // in the order of the trace
  AllocatorStatistics statistics;  // at the end; peaks over the whole replay
  Bytes peak_allocated() const { return Bytes{statistics.allocated_bytes.all.peak}; }
  Bytes peak_reserved() const { return Bytes{statistics.reserved_bytes.all.peak}; }
  // The peak allocated bytes of one iteration; 0 if the trace does not contain it.
  Bytes peak_allocated(int iteration) const;
};

// Storages that are live at the end of the trace stay allocated. With a workspace model, each
// convolution allocates its workspace where the call was recorded. Resets the allocator's peaks.
// Throws OutOfMemory if the allocator does.
ReplayResult replay(const Trace& trace, Allocator& allocator,
                    const WorkspaceModel* workspaces = nullptr);

}  // namespace memfathom
