#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "tests/kernels/memory/allocator/reference_allocator.h"

namespace memfathom {
namespace {

using testing::ReferenceAllocator;
using testing::ReferenceOptions;

constexpr std::int64_t kMiB = 1 << 20;

struct Mode {
  const char* name;
  std::int64_t max_split_mb;
  bool expandable;
  std::int64_t capacity_mb;  // 0: unlimited
  int streams;
};

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

using Row = std::tuple<std::uint64_t, std::int64_t, std::int64_t, BlockState>;

std::vector<Row> rows_of(const AllocatorSnapshot& snapshot) {
  std::vector<Row> rows;
  for (const SegmentSnapshot& segment : snapshot.segments) {
    for (const BlockSnapshot& block : segment.blocks) {
      rows.emplace_back(block.address, block.size.count(), block.requested.count(), block.state);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Row> rows_of(const ReferenceAllocator& reference) {
  std::vector<Row> rows;
  for (const ReferenceAllocator::Block* block : reference.blocks()) {
    const BlockState state = block->allocated ? BlockState::kAllocated
                             : block->waiting ? BlockState::kAwaitingEvents
                             : block->mapped  ? BlockState::kFree
                                              : BlockState::kUnmapped;
    rows.emplace_back(static_cast<std::uint64_t>(block->address), block->size, block->requested,
                      state);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Segments do not overlap, blocks fill them without gaps, and the statistics are the blocks' sums.
void check_invariants(const AllocatorSnapshot& snapshot) {
  std::uint64_t end_of_last = 0;
  std::int64_t allocated = 0;
  std::int64_t active = 0;
  std::int64_t reserved = 0;
  for (const SegmentSnapshot& segment : snapshot.segments) {
    ASSERT_GE(segment.address, end_of_last);
    std::uint64_t at = segment.address;
    BlockState before = BlockState::kAllocated;
    for (const BlockSnapshot& block : segment.blocks) {
      ASSERT_EQ(block.address, at);
      ASSERT_GT(block.size.count(), 0);
      ASSERT_EQ(block.size.count() % 512, 0);
      ASSERT_FALSE(block.state == before &&
                   (before == BlockState::kFree || before == BlockState::kUnmapped))
          << "neighbours that should have merged";
      before = block.state;
      at += static_cast<std::uint64_t>(block.size.count());
      if (block.state == BlockState::kAllocated) allocated += block.size.count();
      if (block.state <= BlockState::kAwaitingEvents) active += block.size.count();
      if (block.state != BlockState::kUnmapped) reserved += block.size.count();
    }
    end_of_last = at;
  }
  EXPECT_EQ(snapshot.statistics.allocated_bytes.all.current, allocated);
  EXPECT_EQ(snapshot.statistics.active_bytes.all.current, active);
  EXPECT_EQ(snapshot.statistics.reserved_bytes.all.current, reserved);
  EXPECT_GE(reserved, active);
}

std::int64_t random_size(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0: return 1 + static_cast<std::int64_t>(random() % 1024);
    case 1:
    case 2: return 1 + static_cast<std::int64_t>(random() % (64 << 10));
    case 3: return 1 + static_cast<std::int64_t>(random() % (2 * kMiB));
    case 4: return 512 << (random() % 14);
    case 5: return 1 + static_cast<std::int64_t>(random() % (12 * kMiB));
    case 6: return (1 + static_cast<std::int64_t>(random() % 20)) * kMiB;
    default: return 1 + static_cast<std::int64_t>(random() % (60 * kMiB));
  }
}

class AllocatorPropertyTest : public ::testing::TestWithParam<Mode> {};

TEST_P(AllocatorPropertyTest, EveryStepEqualsTheReferenceAndLosesNoByte) {
  const Mode& mode = GetParam();
  AllocatorOptions options;
  ReferenceOptions reference_options;
  options.expandable_segments = reference_options.expandable = mode.expandable;
  if (mode.max_split_mb > 0) {
    options.max_split_size = Bytes{mode.max_split_mb * kMiB};
    reference_options.max_split = mode.max_split_mb * kMiB;
  }
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto make_source = [&] {
      return mode.capacity_mb > 0 ? ArithmeticSegments(Bytes{mode.capacity_mb * kMiB})
                                  : ArithmeticSegments();
    };
    ArithmeticSegments source = make_source();
    ArithmeticSegments reference_source = make_source();
    {
      CachingAllocator allocator(source, options);
      ReferenceAllocator reference(reference_source, reference_options);
      std::vector<std::pair<Allocation, ReferenceAllocator::Block*>> live;
      std::int64_t ooms = 0;
      const auto free_one = [&](std::size_t i) {
        allocator.free(live[i].first);
        reference.free(live[i].second);
        live[i] = live.back();
        live.pop_back();
      };
      for (int step = 0; step < 1500; ++step) {
        const std::uint64_t action = random() % 100;
        if (action < 52) {
          const std::int64_t size = random_size(random);
          const int stream = static_cast<int>(random() % static_cast<std::uint64_t>(mode.streams));
          ReferenceAllocator::Block* expected = reference.allocate(size, stream);
          if (expected == nullptr) {
            ++ooms;
            EXPECT_THROW(allocator.allocate(Bytes{size}, stream), OutOfMemory);
          } else {
            const Allocation allocation = allocator.allocate(Bytes{size}, stream);
            ASSERT_EQ(allocation.address, static_cast<std::uint64_t>(expected->address));
            ASSERT_EQ(allocation.bytes.count(), expected->size);
            live.emplace_back(allocation, expected);
          }
        } else if (action < 94) {
          if (!live.empty()) free_one(random() % live.size());
        } else if (action < 96) {
          if (!live.empty()) {
            const auto& [allocation, block] = live[random() % live.size()];
            const int stream = static_cast<int>(random() % 3);
            allocator.record_stream(allocation, stream);
            reference.record_stream(block, stream);
          }
        } else if (action < 98) {
          allocator.process_events();
          reference.process_events();
        } else if (action == 98) {
          allocator.empty_cache();
          reference.empty_cache();
        } else if (!live.empty()) {  // end of a phase: free most blocks
          while (live.size() > 3) free_one(random() % live.size());
        }
        const AllocatorStatistics& statistics = allocator.statistics();
        const ReferenceAllocator::Totals totals = reference.totals();
        ASSERT_EQ(statistics.allocated_bytes.all.current, totals.allocated);
        ASSERT_EQ(statistics.active_bytes.all.current, totals.active);
        ASSERT_EQ(statistics.reserved_bytes.all.current, totals.reserved);
        ASSERT_EQ(statistics.inactive_split_bytes.all.current, totals.inactive_split);
        ASSERT_EQ(statistics.requested_bytes.all.current, totals.requested);
        ASSERT_EQ(statistics.num_ooms, ooms);
        ASSERT_EQ(statistics.num_alloc_retries, reference.retries);
        ASSERT_EQ(source.held().count(), totals.reserved);
        if (step % 50 == 0) {
          ASSERT_EQ(rows_of(allocator.snapshot()), rows_of(reference));
          ASSERT_NO_FATAL_FAILURE(check_invariants(allocator.snapshot()));
        }
      }
      while (!live.empty()) free_one(live.size() - 1);
      allocator.process_events();
      EXPECT_EQ(allocator.statistics().active_bytes.all.current, 0);
      allocator.empty_cache();
      EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, 0);
      // A range whose first page could not be had stays reserved, as in PyTorch; it holds no
      // memory.
      for (const SegmentSnapshot& left : allocator.snapshot().segments) {
        EXPECT_EQ(left.size, Bytes{});
      }
      EXPECT_EQ(source.held(), Bytes{});
    }
    EXPECT_EQ(source.held(), Bytes{});
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AllocatorPropertyTest,
                         ::testing::Values(Mode{"Plain", 0, false, 0, 1},
                                           Mode{"TwoStreams", 0, false, 0, 2},
                                           Mode{"SmallDevice", 0, false, 256, 2},
                                           Mode{"MaxSplit", 21, false, 0, 1},
                                           Mode{"MaxSplitSmallDevice", 24, false, 320, 2},
                                           Mode{"Expandable", 0, true, 0, 2},
                                           Mode{"ExpandableSmallDevice", 0, true, 256, 2},
                                           Mode{"ExpandableMaxSplit", 30, true, 300, 1}),
                         [](const auto& mode) { return mode.param.name; });

TEST(CachingAllocatorLifetimeTest, ReleasesLiveBlocksInItsDestructor) {
  for (const bool expandable : {false, true}) {
    ArithmeticSegments source;
    AllocatorOptions options;
    options.expandable_segments = expandable;
    {
      CachingAllocator allocator(source, options);
      const Allocation first = allocator.allocate(Bytes{30 * kMiB});
      allocator.allocate(Bytes{50 * kMiB});
      allocator.allocate(Bytes{100});
      allocator.free(first);
      allocator.empty_cache();
      EXPECT_GT(source.held(), Bytes{});
    }
    EXPECT_EQ(source.held(), Bytes{});
  }
}

}  // namespace
}  // namespace memfathom
