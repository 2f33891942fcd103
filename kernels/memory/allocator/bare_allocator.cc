#include "kernels/memory/allocator/bare_allocator.h"

#include <fmt/format.h>

#include "kernels/memory/allocator/rounding.h"

namespace memfathom {

namespace {

constexpr Bytes kLimit{std::int64_t{1} << 60};  // sums cannot overflow

}  // namespace

Allocation BareAllocator::allocate(Bytes size, int) {
  if (size < Bytes{}) {
    throw Error(ErrorKind::kInput,
                fmt::format("a request for {} B of memory; it must not be negative", size.count()));
  }
  if (size == Bytes{}) return {};
  const Bytes allocated{statistics_.allocated_bytes.all.current};
  if (size > kLimit - allocated) {
    throw OutOfMemory(fmt::format("a request for {} exceeds the total of 2^60 B", to_string(size)),
                      size, allocated, allocated);
  }
  std::uint32_t index = 0;
  if (unused_.empty()) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  const Bytes bytes = size.rounded_up(kGranularity);
  slots_[index] = {bytes.count(), size.count()};
  count(slots_[index], 1);
  return {(std::uint64_t{index} + 1) * 512, bytes, index};
}

void BareAllocator::free(const Allocation& allocation) {
  if (!allocation) return;
  if (allocation.block >= slots_.size() || slots_[allocation.block].bytes == 0) {
    throw Error(ErrorKind::kInternal,
                fmt::format("block {} was freed but is not in use", allocation.block));
  }
  Slot& slot = slots_[allocation.block];
  count(slot, -1);
  slot = {};
  unused_.push_back(allocation.block);
}

void BareAllocator::count(const Slot& slot, std::int64_t sign) {
  const bool small = slot.bytes <= kSmallSize;  // makes the pools' counts comparable
  statistics_.allocated_bytes.add(small, sign * slot.bytes);
  statistics_.active_bytes.add(small, sign * slot.bytes);
  statistics_.reserved_bytes.add(small, sign * slot.bytes);
  statistics_.requested_bytes.add(small, sign * slot.requested);
  statistics_.allocation.add(small, sign);
  statistics_.active.add(small, sign);
}

}  // namespace memfathom
