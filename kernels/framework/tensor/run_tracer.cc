#include "kernels/framework/tensor/run_tracer.h"

namespace memfathom {

Allocation RunTracer::allocate(Bytes size, int stream) {
  note_phase();
  if (session_ != nullptr) {
    set_tag(to_string(session_->component));
    set_module(session_->ledger().module_names()[session_->module]);
  }
  return TracingAllocator::allocate(size, stream);
}

void RunTracer::free(const Allocation& allocation) {
  note_phase();
  TracingAllocator::free(allocation);
}

void RunTracer::note_phase() {
  if (session_ == nullptr) return;
  const std::vector<PhaseRecord>& phases = session_->ledger().phases();
  for (; phases_seen_ < phases.size(); ++phases_seen_)
    enter_phase(phases[phases_seen_].name, phases[phases_seen_].iteration);
}

}  // namespace memfathom
