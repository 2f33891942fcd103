// LimitedSegments: forwards to another source up to a ceiling and records the peak.
#pragma once

#include <atomic>

#include "kernels/memory/allocator/segment_source.h"

namespace memfathom {

// Beyond the ceiling it reports out of memory, so that a profile leaves the rest to other
// processes.
class LimitedSegments final : public SegmentSource {
 public:
  LimitedSegments(SegmentSource& inner, Bytes ceiling) : inner_(inner), ceiling_(ceiling) {}

  std::optional<std::uint64_t> allocate(Bytes size, int stream) override;
  void release(std::uint64_t address, Bytes size) override;
  std::optional<Bytes> capacity() const override;

  bool expandable() const override { return inner_.expandable(); }
  std::uint64_t reserve(Bytes size) override { return inner_.reserve(size); }
  void unreserve(std::uint64_t address, Bytes size) override { inner_.unreserve(address, size); }
  bool map(std::uint64_t address, Bytes size, Bytes page) override;
  void unmap(std::uint64_t address, Bytes size, Bytes page) override;

  Bytes held() const { return Bytes{held_}; }
  Bytes peak() const { return Bytes{peak_}; }

 private:
  bool fits(Bytes size) const { return size <= ceiling_ - held(); }
  void take(Bytes size);

  SegmentSource& inner_;
  Bytes ceiling_;
  std::atomic<std::int64_t> held_{0};
  std::atomic<std::int64_t> peak_{0};
};

}  // namespace memfathom
