// TracingAllocator: forwards to another allocator and records a trace (docs/contract.md §5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/memory/allocator/forwarding_allocator.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

class TracingAllocator : public ForwardingAllocator {
 public:
  // Both must outlive the allocator.
  TracingAllocator(Allocator& inner, TraceSink& sink) : ForwardingAllocator(inner), sink_(sink) {}

  // The component of the next allocations; the code that runs the model updates it.
  void set_tag(std::string_view tag) { tag_ = tag; }
  void set_module(std::string_view module) { module_ = module; }  // likewise
  void enter_phase(const std::string& name, int iteration);

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;

 private:
  struct Live {
    std::int64_t id = 0;
    int stream = 0;
  };

  TraceSink& sink_;
  std::string tag_;
  std::string module_;
  std::string phase_;
  std::int64_t last_id_ = 0;
  std::vector<Live> live_;  // by block
};

}  // namespace memfathom
