// MmapSegments: segments of resident host memory, for the cpu device.
#pragma once

#include "kernels/memory/allocator/segment_source.h"

namespace memfathom {

// Every page is populated when it is mapped, so that reserved memory is resident, as on a GPU. A
// capacity makes the source fail like a device of that size, before the kernel starts killing
// processes.
class MmapSegments final : public SegmentSource {
 public:
  MmapSegments() = default;
  explicit MmapSegments(Bytes capacity) : capacity_(capacity) {}

  std::optional<std::uint64_t> allocate(Bytes size, int stream) override;
  void release(std::uint64_t address, Bytes size) override;
  std::optional<Bytes> capacity() const override { return capacity_; }

  bool expandable() const override { return true; }
  std::uint64_t reserve(Bytes size) override;
  void unreserve(std::uint64_t address, Bytes size) override;
  bool map(std::uint64_t address, Bytes size, Bytes page) override;
  void unmap(std::uint64_t address, Bytes size, Bytes page) override;

  Bytes held() const { return held_; }

 private:
  bool fits(Bytes size) const { return !capacity_ || size <= *capacity_ - held_; }

  std::optional<Bytes> capacity_;
  Bytes held_;
  std::uint64_t mapped_ = 0;  // addresses used so far, including released segments
};

}  // namespace memfathom
