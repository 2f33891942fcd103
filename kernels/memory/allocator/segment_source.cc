#include "kernels/memory/allocator/segment_source.h"

#include "core/error.h"

namespace memfathom {

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kEnvironment,
              "expandable_segments: this device cannot map memory into reserved addresses; leave "
              "the option out");
}

}  // namespace

std::uint64_t SegmentSource::reserve(Bytes) { refuse(); }
void SegmentSource::unreserve(std::uint64_t, Bytes) { refuse(); }
bool SegmentSource::map(std::uint64_t, Bytes, Bytes) { refuse(); }
void SegmentSource::unmap(std::uint64_t, Bytes, Bytes) { refuse(); }

}  // namespace memfathom
