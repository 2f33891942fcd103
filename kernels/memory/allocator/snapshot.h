// AllocatorSnapshot: every segment and block of an allocator at one moment, as in
// torch.cuda.memory_snapshot().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "kernels/memory/allocator/statistics.h"

namespace memfathom {

enum class BlockState : std::uint8_t { kAllocated, kAwaitingEvents, kFree, kUnmapped };

struct BlockSnapshot {
  std::uint64_t address = 0;
  Bytes size;
  Bytes requested;  // 0 unless allocated or awaiting events
  BlockState state = BlockState::kFree;
};

struct SegmentSnapshot {
  std::uint64_t address = 0;
  Bytes size;  // mapped bytes; less than the address range of an expandable segment
  int stream = 0;
  int private_pool = 0;  // 0: of the common pools
  bool small_pool = false;
  bool expandable = false;
  std::vector<BlockSnapshot> blocks;  // by address, without gaps
};

struct AllocatorSnapshot {
  std::vector<SegmentSnapshot> segments;  // by address
  AllocatorStatistics statistics;
};

const char* to_string(
    BlockState state);  // torch's names: "active_allocated", "active_awaiting_free", ...
std::string to_json(const AllocatorStatistics& statistics);
std::string to_json(const AllocatorSnapshot& snapshot);

}  // namespace memfathom
