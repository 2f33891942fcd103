// ArithmeticSegments: segments with addresses but no memory, for dry runs and replays.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernels/memory/allocator/segment_source.h"

namespace memfathom {

// Addresses increase and are 2 MiB aligned, as cudaMalloc's are in practice; released ranges are
// reused. The capacity limits the total bytes, not their placement: GPU memory is paged and does
// not fragment.
class ArithmeticSegments final : public SegmentSource {
 public:
  ArithmeticSegments() = default;
  explicit ArithmeticSegments(Bytes capacity);

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
  bool fits(Bytes size) const;
  std::optional<std::uint64_t> place(std::uint64_t size);
  void give_back(std::uint64_t address, std::uint64_t size);
  void erase_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole);

  std::optional<Bytes> capacity_;
  Bytes held_;
  std::uint64_t next_ = std::uint64_t{1} << 40;   // the lowest unused address
  std::map<std::uint64_t, std::uint64_t> holes_;  // released ranges: address, size
  std::set<std::pair<std::uint64_t, std::uint64_t>> holes_by_size_;  // size, address
};

}  // namespace memfathom
