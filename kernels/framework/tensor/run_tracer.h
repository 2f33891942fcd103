// RunTracer: an allocator wrapper that writes the trace of a session's run (docs/contract.md §5).
#pragma once

#include <cstddef>

#include "kernels/framework/tensor/session.h"
#include "kernels/memory/trace/tracing_allocator.h"

namespace memfathom {

class RunTracer final : public TracingAllocator {
 public:
  using TracingAllocator::TracingAllocator;

  // The session whose phases, modules and components the events get; without it they have none.
  void follow(Session& session) { session_ = &session; }

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;

 private:
  void note_phase();

  Session* session_ = nullptr;
  std::size_t phases_seen_ = 0;
};

}  // namespace memfathom
