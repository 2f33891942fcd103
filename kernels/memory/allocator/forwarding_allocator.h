// ForwardingAllocator: forwards every call to another allocator; derive from it to intercept some
// calls.
#pragma once

#include "kernels/memory/allocator/allocator.h"

namespace memfathom {

class ForwardingAllocator : public Allocator {
 public:
  explicit ForwardingAllocator(Allocator& inner) : inner_(inner) {}  // must outlive this one

  Allocation allocate(Bytes size, int stream = 0) override { return inner_.allocate(size, stream); }
  void free(const Allocation& allocation) override { inner_.free(allocation); }
  void record_stream(const Allocation& allocation, int stream) override {
    inner_.record_stream(allocation, stream);
  }
  void process_events() override { inner_.process_events(); }
  void use_private_pool(int pool) override { inner_.use_private_pool(pool); }
  void release_private_pool(int pool) override { inner_.release_private_pool(pool); }
  void empty_cache() override { inner_.empty_cache(); }
  const AllocatorStatistics& statistics() const override { return inner_.statistics(); }
  void reset_peaks() override { inner_.reset_peaks(); }

 private:
  Allocator& inner_;
};

}  // namespace memfathom
