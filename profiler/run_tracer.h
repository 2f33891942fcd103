// RunTracer: an allocator wrapper that writes the trace of a run (docs/contract.md §5).
#pragma once

#include <fstream>
#include <string>

#include "kernels/framework/tensor/session.h"
#include "kernels/memory/trace/tracing_allocator.h"

namespace memfathom {

struct TraceFile {
  TraceFile(const std::string& path, const std::string& device);
  std::ofstream file;
  TraceWriter writer;
};

// The file is a base class so that it is constructed before the allocator that writes to it.
class RunTracer final : private TraceFile, public TracingAllocator {
 public:
  // Gzipped if the name ends in .gz. Throws Error(kEnvironment) if the file cannot be created.
  RunTracer(Allocator& inner, const std::string& path, const std::string& device);

  // The ledger whose phases and components the events get; without it they have none.
  void follow(Session& session) { session_ = &session; }
  void finish() { writer.finish(); }

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;

 private:
  void note_phase();

  Session* session_ = nullptr;
  std::size_t phases_seen_ = 0;
};

}  // namespace memfathom
