// Snapshot: a file of torch.cuda.memory._dump_snapshot as a trace.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

// Whether a file begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view beginning);

// The history of the device that has the most events. What was alive before the history began is
// allocated first, in phase `load`. Phases follow from the Python frames of each event, as do
// operations and lines. Throws Error(kInput).
Trace read_snapshot(std::string_view bytes, const std::string& name);

// A request that the GPU could not serve.
struct SnapshotFailure {
  Bytes requested;
  Bytes device_free;       // of the GPU at that moment
  std::size_t events = 0;  // of the trace that came before it
  std::string line;        // of the script, "train.py:17"
};

// The same file with what a trace does not have.
struct Snapshot {
  Trace trace;
  std::optional<SnapshotFailure> failure;  // the last one of the history
  // The allocator when the file was written; all 0 if the file lists no segments.
  Bytes reserved;
  Bytes allocated;
  Bytes largest_free_block;
};
Snapshot read_whole_snapshot(std::string_view bytes, const std::string& name);

// The bytes of a snapshot's file, or nothing if it is not a pickle. Throws Error(kInput) for what
// cannot be read or is too large.
std::optional<std::string> load_pickle(const std::string& path);

}  // namespace memfathom
