// SegmentSource: where a caching allocator gets whole segments from: cudaMalloc, mmap, or
// arithmetic.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bytes.h"

namespace memfathom {

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // The address of `size` new bytes, or nothing when the device is out of memory (the caller may
  // release some and ask again). Any other failure throws Error(kEnvironment). Giving back never
  // throws: destructors do it.
  virtual std::optional<std::uint64_t> allocate(Bytes size, int stream) = 0;
  virtual void release(std::uint64_t address, Bytes size) = 0;

  // How much memory the device has, if known.
  virtual std::optional<Bytes> capacity() const = 0;

  // Expandable segments: address space first, memory later. A source without this ability says
  // false here and the four functions below throw Error(kEnvironment).
  virtual bool expandable() const { return false; }
  virtual std::uint64_t reserve(Bytes size);
  virtual void unreserve(std::uint64_t address, Bytes size);
  // Backs [address, address + size) with memory in units of `page`; false, and nothing mapped, when
  // out of memory.
  virtual bool map(std::uint64_t address, Bytes size, Bytes page);
  virtual void unmap(std::uint64_t address, Bytes size, Bytes page);
};

}  // namespace memfathom
