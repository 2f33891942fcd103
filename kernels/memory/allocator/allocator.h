// Allocator: the interface through which storages, workspaces and temporaries get memory.
//
// CachingAllocator implements PyTorch's policy over a SegmentSource, BareAllocator only counts
// tensors, and TracingAllocator records the calls to another allocator. None is thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/bytes.h"
#include "core/error.h"
#include "kernels/memory/allocator/statistics.h"

namespace memfathom {

// Memory from an Allocator; a plain value, owned by the caller.
struct Allocation {
  static constexpr std::uint32_t kNoBlock = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t address = 0;  // 0 for an empty request
  Bytes bytes;                // its share of memory_allocated(): rounded, plus slack not split off
  std::uint32_t block = kNoBlock;  // the allocator's internal id

  explicit operator bool() const { return block != kNoBlock; }
  void* data() const {
    return reinterpret_cast<void*>(address);
  }  // meaningful on cpu and cuda only
};

// The device is out of memory, even after the allocator released its cache.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& sentence, Bytes requested, Bytes allocated, Bytes reserved)
      : Error(ErrorKind::kOutOfMemory, sentence),
        requested_(requested),
        allocated_(allocated),
        reserved_(reserved) {}

  Bytes requested() const { return requested_; }  // the segment that could not be allocated
  Bytes allocated() const { return allocated_; }  // in use at that time
  Bytes reserved() const { return reserved_; }

 private:
  Bytes requested_;
  Bytes allocated_;
  Bytes reserved_;
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  // Zero bytes allocate and count nothing. Throws OutOfMemory, or Error(kInput) for a negative
  // size.
  virtual Allocation allocate(Bytes size, int stream = 0) = 0;

  // Freeing an empty allocation does nothing; freeing one twice is Error(kInternal).
  virtual void free(const Allocation& allocation) = 0;

  // Records that `stream` also uses the memory: once freed, it stays active until that stream's
  // events have completed.
  virtual void record_stream(const Allocation& allocation, int stream) = 0;
  // Called when all submitted work has completed: blocks that waited for other streams return to
  // their pools.
  virtual void process_events() = 0;

  // The private pool that the following allocations come from, as those of a CUDA graph's capture
  // do; 0: the common pools. Its free blocks serve no other pool, and are not released while the
  // pool is kept. Allocators without pools ignore it.
  virtual void use_private_pool(int /*pool*/) {}
  // The graphs of a private pool are gone: its cache may be released.
  virtual void release_private_pool(int /*pool*/) {}

  // Releases every unused segment to the device.
  virtual void empty_cache() = 0;

  virtual const AllocatorStatistics& statistics() const = 0;
  virtual void reset_peaks() = 0;
};

}  // namespace memfathom
