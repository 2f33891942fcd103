// RunTracer: an allocator in front of another one that writes the trace of a run
// (docs/contract.md §5).
#pragma once

#include <fstream>
#include <string>

#include "kernels/allocator/tracing_allocator.h"
#include "kernels/tensor/session.h"

namespace memfathom {

class RunTracer final : public Allocator {
 public:
  // Gzipped when the name ends in .gz. Throws Error(kEnvironment) when the file cannot be made.
  RunTracer(Allocator& inner, const std::string& path, const std::string& device);

  // Whose phases and components the events carry; before that they carry none.
  void follow(Session& session) { session_ = &session; }
  void finish() { writer_.finish(); }

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;
  void record_stream(const Allocation& allocation, int stream) override {
    tracing_.record_stream(allocation, stream);
  }
  void process_events() override { tracing_.process_events(); }
  void empty_cache() override { tracing_.empty_cache(); }
  const AllocatorStatistics& statistics() const override { return tracing_.statistics(); }
  void reset_peaks() override { tracing_.reset_peaks(); }

 private:
  void note_phase();

  std::ofstream file_;
  TraceWriter writer_;
  TracingAllocator tracing_;
  Session* session_ = nullptr;
  std::size_t phases_seen_ = 0;
};

}  // namespace memfathom
