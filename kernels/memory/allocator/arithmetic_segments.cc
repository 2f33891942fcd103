#include "kernels/memory/allocator/arithmetic_segments.h"

#include <fmt/format.h>

#include <iterator>

#include "core/error.h"

namespace memfathom {

namespace {

constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;
constexpr std::uint64_t kAddressLimit = std::uint64_t{1} << 57;

}  // namespace

ArithmeticSegments::ArithmeticSegments(Bytes capacity) : capacity_(capacity) {
  if (capacity < Bytes{}) {
    throw Error(ErrorKind::kInput,
                fmt::format("memory capacity is {} B; it must not be negative", capacity.count()));
  }
}

std::optional<std::uint64_t> ArithmeticSegments::allocate(Bytes size, int) {
  if (!fits(size)) return std::nullopt;
  const std::optional<std::uint64_t> address = place(static_cast<std::uint64_t>(size.count()));
  if (address) held_ += size;
  return address;
}

void ArithmeticSegments::release(std::uint64_t address, Bytes size) {
  held_ -= size;
  give_back(address, static_cast<std::uint64_t>(size.count()));
}

std::uint64_t ArithmeticSegments::reserve(Bytes size) {
  const std::optional<std::uint64_t> address = place(static_cast<std::uint64_t>(size.count()));
  if (!address) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("no address space is left for an expandable segment of {}; use fewer streams",
                    to_string(size)));
  }
  return *address;
}

void ArithmeticSegments::unreserve(std::uint64_t address, Bytes size) {
  give_back(address, static_cast<std::uint64_t>(size.count()));
}

bool ArithmeticSegments::map(std::uint64_t, Bytes size, Bytes) {
  if (!fits(size)) return false;
  held_ += size;
  return true;
}

void ArithmeticSegments::unmap(std::uint64_t, Bytes size, Bytes) { held_ -= size; }

bool ArithmeticSegments::fits(Bytes size) const { return !capacity_ || size <= *capacity_ - held_; }

// The smallest hole that is large enough, else new addresses at the end.
std::optional<std::uint64_t> ArithmeticSegments::place(std::uint64_t size) {
  if (size == 0 || size > kAddressLimit) return std::nullopt;
  size = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (const auto found = holes_by_size_.lower_bound({size, 0}); found != holes_by_size_.end()) {
    const auto [hole_size, address] = *found;
    erase_hole(holes_.find(address));
    if (hole_size > size) {
      holes_.emplace(address + size, hole_size - size);
      holes_by_size_.emplace(hole_size - size, address + size);
    }
    return address;
  }
  if (size > kAddressLimit - next_) return std::nullopt;
  const std::uint64_t address = next_;
  next_ += size;
  return address;
}

void ArithmeticSegments::give_back(std::uint64_t address, std::uint64_t size) {
  size = (size + kAlignment - 1) / kAlignment * kAlignment;
  auto after = holes_.lower_bound(address);
  if (after != holes_.end() && after->first == address + size) {
    size += after->second;
    erase_hole(after++);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      address = before->first;
      size += before->second;
      erase_hole(before);
    }
  }
  holes_.emplace(address, size);
  holes_by_size_.emplace(size, address);
}

void ArithmeticSegments::erase_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole) {
  holes_by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

}  // namespace memfathom
