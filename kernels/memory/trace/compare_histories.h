// Comparison of two histories of one job, allocation by allocation: what PyTorch recorded and what
// the replay does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/enum_names.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

enum class HistoryDifferenceKind : std::uint8_t {
  kOnlyRecorded,  // the replay does not allocate it
  kOnlyReplayed,
  kSize,         // both allocate there, but not as much
  kFreedSooner,  // by the recording than by the replay
  kFreedLater,
};

template <>
inline constexpr auto kEnumNames<HistoryDifferenceKind> =
    std::to_array<EnumName<HistoryDifferenceKind>>(
        {{HistoryDifferenceKind::kOnlyRecorded, "only_recorded"},
         {HistoryDifferenceKind::kOnlyReplayed, "only_replayed"},
         {HistoryDifferenceKind::kSize, "size"},
         {HistoryDifferenceKind::kFreedSooner, "freed_sooner"},
         {HistoryDifferenceKind::kFreedLater, "freed_later"}});

// One allocation of a history.
struct HistoryAllocation {
  std::size_t number = 0;  // from 1
  Bytes bytes;             // as requested
  Trace::Label label;
  std::string phase;
  int iteration = 0;
};

struct HistoryDifference {
  HistoryDifferenceKind kind = HistoryDifferenceKind::kSize;
  // The allocation in question, in either history. Where only one has it, the other field is the
  // allocation there that comes next (number 0: none does).
  HistoryAllocation recorded;
  HistoryAllocation replayed;
};

struct HistoryComparison {
  std::size_t recorded = 0;  // allocations
  std::size_t replayed = 0;
  std::size_t equal = 0;  // in both, of equal size (in blocks of 512 bytes) and equal lifetime
  // In the order of the recording; at most kMaxHistoryDifferences.
  std::vector<HistoryDifference> differences;
  // The histories have nothing in common from the last difference on, or too many were found.
  bool gave_up = false;
};

inline constexpr std::size_t kMaxHistoryDifferences = 1000;

// Allocations correspond by order and size. Frees count by the allocations they lie between: the
// order of two frees with no allocation between them does not matter, and what is alive at the
// end is taken to be freed there.
HistoryComparison compare_histories(const Trace& recorded, const Trace& replayed);

}  // namespace memfathom
