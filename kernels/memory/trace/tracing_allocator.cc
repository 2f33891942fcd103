#include "kernels/memory/trace/tracing_allocator.h"

namespace memfathom {

void TracingAllocator::enter_phase(const std::string& name, int iteration) {
  phase_ = name;
  TraceEvent event;
  event.op = TraceOp::kPhase;
  event.phase = name;
  event.iteration = iteration;
  sink_.write(event);
}

Allocation TracingAllocator::allocate(Bytes size, int stream) {
  const Allocation allocation = ForwardingAllocator::allocate(size, stream);
  if (!allocation) return allocation;
  TraceEvent event;
  event.op = TraceOp::kAlloc;
  event.id = ++last_id_;
  event.bytes = size;
  event.stream = stream;
  event.phase = phase_;
  event.tag = tag_;
  event.module = module_;
  if (live_.size() <= allocation.block) live_.resize(std::size_t{allocation.block} + 1);
  live_[allocation.block] = {event.id, stream};
  sink_.write(event);
  return allocation;
}

void TracingAllocator::free(const Allocation& allocation) {
  ForwardingAllocator::free(allocation);
  if (!allocation) return;
  TraceEvent event;
  event.op = TraceOp::kFree;
  event.id = live_[allocation.block].id;
  event.stream = live_[allocation.block].stream;
  event.phase = phase_;
  sink_.write(event);
}

}  // namespace memfathom
