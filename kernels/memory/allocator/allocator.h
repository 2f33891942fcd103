// Allocator: the one way in which storages, workspaces and temporaries get memory.
//
// CachingAllocator follows PyTorch's policy over a SegmentSource, BareAllocator counts tensors
// alone, and TracingAllocator records what passes through to another one. None of them may be used
// from two threads at once.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/bytes.h"
#include "core/error.h"
#include "kernels/memory/allocator/statistics.h"

namespace memfathom {

// A piece of memory handed out by an Allocator; a plain value, owned by whoever asked for it.
struct Allocation {
  static constexpr std::uint32_t kNoBlock = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t address = 0;  // 0 for an empty request
  Bytes bytes;  // what memory_allocated() counts for it: rounded, plus slack not split off
  std::uint32_t block = kNoBlock;  // the allocator's own name for it

  explicit operator bool() const { return block != kNoBlock; }
  void* data() const {
    return reinterpret_cast<void*>(address);
  }  // meaningful on cpu and cuda only
};

// The device has no room left, even after everything cached was given back.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& sentence, Bytes requested, Bytes allocated, Bytes reserved)
      : Error(ErrorKind::kOutOfMemory, sentence),
        requested_(requested),
        allocated_(allocated),
        reserved_(reserved) {}

  Bytes requested() const { return requested_; }  // the segment that could not be had
  Bytes allocated() const { return allocated_; }  // in use when it happened
  Bytes reserved() const { return reserved_; }

 private:
  Bytes requested_;
  Bytes allocated_;
  Bytes reserved_;
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  // Zero bytes allocate nothing and count nothing. Throws OutOfMemory, or Error(kInput) for a
  // negative size.
  virtual Allocation allocate(Bytes size, int stream = 0) = 0;

  // Freeing an empty allocation does nothing; freeing one twice is Error(kInternal).
  virtual void free(const Allocation& allocation) = 0;

  // The memory is also used on `stream`: once freed, it stays active until that stream's events
  // completed.
  virtual void record_stream(const Allocation& allocation, int stream) = 0;
  // All work submitted so far has completed: blocks that waited for other streams return to their
  // pools.
  virtual void process_events() = 0;

  // Gives back to the device every segment that holds nothing.
  virtual void empty_cache() = 0;

  virtual const AllocatorStatistics& statistics() const = 0;
  virtual void reset_peaks() = 0;
};

}  // namespace memfathom
