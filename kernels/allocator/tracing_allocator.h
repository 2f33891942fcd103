// TracingAllocator: passes everything on to another allocator and records it as a trace
// (docs/contract.md §5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/allocator/forwarding_allocator.h"
#include "kernels/allocator/trace.h"

namespace memfathom {

class TracingAllocator final : public ForwardingAllocator {
 public:
  // What the next events are about; whoever runs the model keeps it up to date.
  struct Labels {
    std::string name;
    std::string module;
    std::string tag;
    std::optional<TraceConvolution> convolution;  // of the next allocation only
  };

  // Both must outlive the allocator.
  TracingAllocator(Allocator& inner, TraceSink& sink) : ForwardingAllocator(inner), sink_(sink) {}

  Labels& labels() { return labels_; }
  void enter_phase(const std::string& name, int iteration);

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;

 private:
  struct Live {
    std::int64_t id = 0;
    int stream = 0;
  };

  TraceSink& sink_;
  Labels labels_;
  std::string phase_;
  std::int64_t last_id_ = 0;
  std::vector<Live> live_;  // by block
};

}  // namespace memfathom
