#include "kernels/memory/allocator/mmap_segments.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace memfathom {

namespace {

// Segments are mapped at ascending addresses from here, as on a GPU: among free blocks of one size
// the allocator takes the lowest, so the address order determines which block is split.
constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 44;
constexpr Bytes kAlignment{2 << 20};

std::size_t length(Bytes size) { return static_cast<std::size_t>(size.count()); }
void* place(std::uint64_t address) { return reinterpret_cast<void*>(address); }

[[noreturn]] void fail(const char* what, Bytes size) {
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} of {} failed: {}", what, to_string(size), std::strerror(errno)));
}

}  // namespace

std::optional<std::uint64_t> MmapSegments::allocate(Bytes size, int) {
  if (!fits(size)) return std::nullopt;
  void* const wanted = place(kFirstAddress + mapped_);
  void* const memory = mmap(wanted, length(size), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    if (errno == ENOMEM) return std::nullopt;
    fail("mapping host memory", size);
  }
  held_ += size;
  mapped_ += static_cast<std::uint64_t>(size.rounded_up(kAlignment).count());
  return reinterpret_cast<std::uint64_t>(memory);
}

void MmapSegments::release(std::uint64_t address, Bytes size) {
  held_ -= size;
  munmap(place(address), length(size));
}

std::uint64_t MmapSegments::reserve(Bytes size) {
  void* const range =
      mmap(nullptr, length(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) fail("reserving addresses", size);
  return reinterpret_cast<std::uint64_t>(range);
}

void MmapSegments::unreserve(std::uint64_t address, Bytes size) {
  munmap(place(address), length(size));
}

bool MmapSegments::map(std::uint64_t address, Bytes size, Bytes) {
  if (!fits(size)) return false;
  if (mmap(place(address), length(size), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    if (errno == ENOMEM) return false;
    fail("mapping host memory", size);
  }
  held_ += size;
  return true;
}

void MmapSegments::unmap(std::uint64_t address, Bytes size, Bytes) {
  held_ -= size;
  // If the kernel refuses, the pages stay until the whole range is released.
  static_cast<void>(mmap(place(address), length(size), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

}  // namespace memfathom
