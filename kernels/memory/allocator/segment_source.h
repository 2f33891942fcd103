// SegmentSource: provides a caching allocator with whole segments: from cudaMalloc, mmap, or
// arithmetic.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bytes.h"

namespace memfathom {

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // The address of `size` new bytes, or nullopt if the device is out of memory (the caller may
  // release some and retry). Any other failure throws Error(kEnvironment). Releasing never throws,
  // because destructors call it.
  virtual std::optional<std::uint64_t> allocate(Bytes size, int stream) = 0;
  virtual void release(std::uint64_t address, Bytes size) = 0;

  // The device's total memory, if known.
  virtual std::optional<Bytes> capacity() const = 0;

  // Expandable segments: address space first, memory later. A source without them returns false
  // here, and the four functions below throw Error(kEnvironment).
  virtual bool expandable() const { return false; }
  virtual std::uint64_t reserve(Bytes size);
  virtual void unreserve(std::uint64_t address, Bytes size);
  // Backs [address, address + size) with memory in units of `page`; returns false and maps nothing
  // if out of memory.
  virtual bool map(std::uint64_t address, Bytes size, Bytes page);
  virtual void unmap(std::uint64_t address, Bytes size, Bytes page);
};

}  // namespace memfathom
