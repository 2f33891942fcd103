#include "profiler/limited_segments.h"

#include <algorithm>

namespace memfathom {

std::optional<std::uint64_t> LimitedSegments::allocate(Bytes size, int stream) {
  if (!fits(size)) return std::nullopt;
  const std::optional<std::uint64_t> address = inner_.allocate(size, stream);
  if (address) take(size);
  return address;
}

void LimitedSegments::release(std::uint64_t address, Bytes size) {
  inner_.release(address, size);
  held_ -= size.count();
}

std::optional<Bytes> LimitedSegments::capacity() const {
  const std::optional<Bytes> inner = inner_.capacity();
  return inner ? std::min(*inner, ceiling_) : ceiling_;
}

bool LimitedSegments::map(std::uint64_t address, Bytes size, Bytes page) {
  if (!fits(size) || !inner_.map(address, size, page)) return false;
  take(size);
  return true;
}

void LimitedSegments::unmap(std::uint64_t address, Bytes size, Bytes page) {
  inner_.unmap(address, size, page);
  held_ -= size.count();
}

void LimitedSegments::take(Bytes size) {
  held_ += size.count();
  peak_ = std::max(peak_.load(), held_.load());
}

}  // namespace memfathom
