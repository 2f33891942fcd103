#include "kernels/memory/allocator/caching_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/memory/allocator/arithmetic_segments.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

class CachingAllocatorTest : public ::testing::Test {
 protected:
  Allocation get(Bytes size, int stream = 0) { return allocator_.allocate(size, stream); }
  const AllocatorStatistics& stats() const { return allocator_.statistics(); }
  Bytes allocated() const { return Bytes{stats().allocated_bytes.all.current}; }
  Bytes reserved() const { return Bytes{stats().reserved_bytes.all.current}; }

  ArithmeticSegments source_;
  CachingAllocator allocator_{source_};
};

TEST_F(CachingAllocatorTest, RoundsEveryRequestUpTo512Bytes) {
  EXPECT_EQ(get(1_B).bytes, 512_B);
  EXPECT_EQ(get(512_B).bytes, 512_B);
  EXPECT_EQ(get(513_B).bytes, 1024_B);
  EXPECT_EQ(allocated(), 2048_B);
  EXPECT_EQ(stats().requested_bytes.all.current, 1 + 512 + 513);
}

TEST_F(CachingAllocatorTest, AllocatesNothingForZeroBytes) {
  const Allocation nothing = get(0_B);
  EXPECT_FALSE(nothing);
  EXPECT_EQ(nothing.address, 0u);
  allocator_.free(nothing);
  allocator_.record_stream(nothing, 3);
  EXPECT_EQ(stats(), AllocatorStatistics{});
}

TEST_F(CachingAllocatorTest, APrivatePoolAndTheCommonOnesDoNotShareBlocks) {
  allocator_.free(get(30_MiB));
  EXPECT_EQ(reserved(), 30_MiB);
  allocator_.use_private_pool(1);
  const Allocation captured = get(30_MiB);
  EXPECT_EQ(reserved(), 60_MiB) << "the cached block is not the graph's";
  allocator_.free(captured);
  EXPECT_EQ(get(30_MiB).address, captured.address) << "its own cache serves the capture";
  allocator_.use_private_pool(2);
  get(30_MiB);
  EXPECT_EQ(reserved(), 90_MiB) << "each graph has its own";
  allocator_.use_private_pool(0);
  get(30_MiB);
  EXPECT_EQ(reserved(), 90_MiB);
}

TEST_F(CachingAllocatorTest, KeepsAPrivatePoolUntilItsGraphsAreGone) {
  allocator_.use_private_pool(1);
  allocator_.free(get(30_MiB));
  allocator_.free(get(1000_B));
  allocator_.use_private_pool(0);
  allocator_.free(get(40_MiB));
  allocator_.empty_cache();
  EXPECT_EQ(reserved(), 32_MiB) << "a replay of the graph writes there";
  ASSERT_EQ(allocator_.snapshot().segments.size(), 2u);
  for (const SegmentSnapshot& segment : allocator_.snapshot().segments)
    EXPECT_EQ(segment.private_pool, 1);
  allocator_.release_private_pool(1);
  EXPECT_EQ(reserved(), 32_MiB) << "freed only when asked for";
  allocator_.empty_cache();
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(CachingAllocatorTest, APrivatePoolHasABlockPerStream) {
  allocator_.use_private_pool(1);
  allocator_.free(get(30_MiB, 3));
  get(30_MiB, 4);
  EXPECT_EQ(reserved(), 60_MiB);
  get(30_MiB, 3);
  EXPECT_EQ(reserved(), 60_MiB);
}

TEST_F(CachingAllocatorTest, RefusesANegativeSize) {
  try {
    get(Bytes{-5});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("-5 B"));
  }
}

TEST_F(CachingAllocatorTest, TakesSegmentsOf2MiBAnd20MiBAndMultiplesOf2MiB) {
  get(1_MiB);  // the largest small request
  EXPECT_EQ(reserved(), 2_MiB);
  get(1_MiB + 1_B);  // the smallest large one: 20 MiB
  EXPECT_EQ(reserved(), 22_MiB);
  get(10_MiB);  // a multiple of 2 MiB already; the 20 MiB segment has 19 MiB - 512 B left
  EXPECT_EQ(reserved(), 22_MiB);
  get(10_MiB);  // 9 MiB - 512 B are left: a segment of exactly 10 MiB
  EXPECT_EQ(reserved(), 32_MiB);
  get(11_MiB);  // 12 MiB
  EXPECT_EQ(reserved(), 44_MiB);
  EXPECT_EQ(stats().reserved_bytes.small_pool.current, (2_MiB).count());
  EXPECT_EQ(stats().reserved_bytes.large_pool.current, (42_MiB).count());
  EXPECT_EQ(stats().segment.all.current, 4);
}

TEST_F(CachingAllocatorTest, SplitsASmallBlockWhenAtLeast512BytesRemain) {
  const Allocation first = get(1_MiB - 512_B);
  const Allocation second = get(1_MiB);  // leaves exactly 512 B of the 2 MiB segment
  EXPECT_EQ(second.bytes, 1_MiB);
  EXPECT_EQ(second.address, first.address + (1 << 20) - 512);
  EXPECT_EQ(get(512_B).address, second.address + (1 << 20));
  EXPECT_EQ(allocated(), 2_MiB);
  EXPECT_EQ(reserved(), 2_MiB);
}

TEST_F(CachingAllocatorTest, SplitsALargeBlockOnlyWhenMoreThanOneMebibyteRemains) {
  // 11 MiB cost a segment of 12 MiB; exactly 1 MiB would remain, which is too little: all 12 count.
  EXPECT_EQ(get(11_MiB).bytes, 12_MiB);
  // 512 B less and the rest is more than 1 MiB: it is split off.
  EXPECT_EQ(get(11_MiB - 512_B).bytes, 11_MiB - 512_B);
  EXPECT_EQ(allocated(), 23_MiB - 512_B);
  EXPECT_EQ(stats().requested_bytes.all.current, (22_MiB - 512_B).count());
  EXPECT_EQ(stats().inactive_split_bytes.all.current, (1_MiB + 512_B).count());
}

TEST_F(CachingAllocatorTest, ChargesAReusedBlockWholeWhenItsSlackIsNotSplitOff) {
  const Allocation first = get(14_MiB);
  allocator_.free(first);
  const Allocation again = get(13_MiB + 512_B);  // 1 MiB - 512 B more than needed
  EXPECT_EQ(again.address, first.address);
  EXPECT_EQ(again.bytes, 14_MiB);
  EXPECT_EQ(reserved(), 14_MiB);
}

TEST_F(CachingAllocatorTest, TakesTheSmallestFreeBlockThatIsLargeEnough) {
  const Allocation large = get(40_MiB);
  const Allocation middle = get(30_MiB);
  const Allocation small = get(20_MiB);
  for (const Allocation& block : {large, middle, small}) allocator_.free(block);
  EXPECT_EQ(get(22_MiB).address, middle.address);  // not the 40 MiB one, and 20 MiB are too few
}

TEST_F(CachingAllocatorTest, TakesTheLowestAddressAmongEqualBlocks) {
  const Allocation a = get(12_MiB);
  const Allocation b = get(12_MiB);
  const Allocation c = get(12_MiB);
  allocator_.free(c);
  allocator_.free(a);
  allocator_.free(b);
  EXPECT_EQ(get(12_MiB).address, a.address);
  EXPECT_EQ(get(12_MiB).address, b.address);
  EXPECT_EQ(get(12_MiB).address, c.address);
}

TEST_F(CachingAllocatorTest, KeepsSmallAndLargeRequestsApart) {
  const Allocation large = get(2_MiB);
  allocator_.free(large);
  EXPECT_NE(get(1_MiB).address, large.address);  // 20 MiB are free, but in the large pool
  EXPECT_EQ(reserved(), 22_MiB);
}

TEST_F(CachingAllocatorTest, KeepsTheCachesOfStreamsApart) {
  const Allocation block = get(12_MiB, 0);
  allocator_.free(block);
  EXPECT_NE(get(12_MiB, 7).address, block.address);
  EXPECT_EQ(reserved(), 24_MiB);
  EXPECT_EQ(get(12_MiB, 0).address, block.address);
  EXPECT_EQ(reserved(), 24_MiB);
}

TEST_F(CachingAllocatorTest, MergesAFreedBlockWithItsFreeNeighboursOnBothSides) {
  const Allocation a = get(6_MiB);  // 20 MiB: a 6, b 6, c 6, rest 2
  const Allocation b = get(6_MiB);
  const Allocation c = get(6_MiB);
  EXPECT_EQ(reserved(), 20_MiB);
  allocator_.free(a);
  allocator_.free(c);  // joins the rest: 8 MiB
  EXPECT_EQ(allocator_.snapshot().segments[0].blocks.size(), 3u);
  allocator_.free(b);
  EXPECT_EQ(allocator_.snapshot().segments[0].blocks.size(), 1u);
  EXPECT_EQ(get(19_MiB).address, a.address);
  EXPECT_EQ(reserved(), 20_MiB);
}

TEST_F(CachingAllocatorTest, NeverMergesAcrossSegments) {
  const Allocation a = get(10_MiB);
  const Allocation b = get(10_MiB);
  ASSERT_EQ(b.address, a.address + (10 << 20));  // side by side all the same
  allocator_.free(a);
  allocator_.free(b);
  get(20_MiB);
  EXPECT_EQ(reserved(), 40_MiB);
}

TEST_F(CachingAllocatorTest, CountsFreePartsOfUsedSegmentsAsInactiveSplit) {
  const Allocation a = get(6_MiB);  // leaves 14 MiB
  EXPECT_EQ(stats().inactive_split_bytes.all.current, (14_MiB).count());
  const Allocation b = get(4_MiB);  // an already split part shrinks to 10 MiB
  EXPECT_EQ(stats().inactive_split_bytes.all.current, (10_MiB).count());
  EXPECT_EQ(stats().inactive_split.all.current, 1);
  allocator_.free(a);  // two free parts: 6 and 10
  EXPECT_EQ(stats().inactive_split_bytes.all.current, (16_MiB).count());
  EXPECT_EQ(stats().inactive_split.all.current, 2);
  const Allocation again = get(6_MiB);  // the whole part becomes active
  EXPECT_EQ(stats().inactive_split_bytes.all.current, (10_MiB).count());
  EXPECT_EQ(stats().inactive_split.all.current, 1);
  allocator_.free(again);
  allocator_.free(b);  // one free segment, not split any more
  EXPECT_EQ(stats().inactive_split_bytes.all.current, 0);
  EXPECT_EQ(stats().inactive_split.all.current, 0);
  EXPECT_EQ(stats().inactive_split_bytes.all.peak, (16_MiB).count());
}

TEST_F(CachingAllocatorTest, KeepsPeaksUntilTheyAreReset) {
  const Allocation a = get(30_MiB);
  const Allocation b = get(1000_B);
  allocator_.free(a);
  EXPECT_EQ(stats().allocated_bytes.all.peak, (30_MiB + 1024_B).count());
  EXPECT_EQ(stats().allocated_bytes.large_pool.peak, (30_MiB).count());
  EXPECT_EQ(stats().allocated_bytes.small_pool.peak, 1024);
  EXPECT_EQ(stats().allocation.all.peak, 2);
  allocator_.reset_peaks();
  EXPECT_EQ(stats().allocated_bytes.all.peak, 1024);
  EXPECT_EQ(stats().reserved_bytes.all.peak, (32_MiB).count());
  allocator_.free(b);
  EXPECT_EQ(stats().allocated_bytes.all.current, 0);
  EXPECT_EQ(stats().requested_bytes.all.current, 0);
}

TEST_F(CachingAllocatorTest, EmptyCacheReleasesOnlyWholeFreeSegments) {
  const Allocation whole = get(12_MiB);
  const Allocation part = get(4_MiB);  // of 20 MiB
  const Allocation small = get(100_B);
  allocator_.free(whole);
  allocator_.empty_cache();
  EXPECT_EQ(reserved(), 22_MiB);
  EXPECT_EQ(source_.held(), 22_MiB);
  allocator_.free(part);
  allocator_.free(small);
  EXPECT_EQ(reserved(), 22_MiB);  // cached until asked
  allocator_.empty_cache();
  EXPECT_EQ(reserved(), 0_B);
  EXPECT_EQ(stats().segment.all.current, 0);
}

TEST_F(CachingAllocatorTest, RefusesToFreeABlockTwice) {
  const Allocation block = get(5_MiB);
  allocator_.free(block);
  try {
    allocator_.free(block);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  }
}

TEST_F(CachingAllocatorTest, HoldsABlockUsedOnAnotherStreamUntilItsEventsComplete) {
  const Allocation block = get(12_MiB, 0);
  allocator_.record_stream(block, 1);
  allocator_.free(block);
  EXPECT_EQ(allocated(), 0_B);
  EXPECT_EQ(stats().active_bytes.all.current, (12_MiB).count());
  EXPECT_EQ(stats().requested_bytes.all.current, (12_MiB).count());
  EXPECT_NE(get(12_MiB).address, block.address);
  EXPECT_EQ(allocator_.snapshot().segments[0].blocks[0].state, BlockState::kAwaitingEvents);
  allocator_.process_events();
  EXPECT_EQ(stats().active_bytes.all.current, (12_MiB).count());  // the second one
  EXPECT_EQ(get(12_MiB).address, block.address);
}

TEST_F(CachingAllocatorTest, IgnoresARecordOfTheBlocksOwnStream) {
  const Allocation block = get(12_MiB, 4);
  allocator_.record_stream(block, 4);
  allocator_.free(block);
  EXPECT_EQ(stats().active_bytes.all.current, 0);
}

TEST_F(CachingAllocatorTest, ClearsOtherStreamsWhenABlockIsReused) {
  const Allocation block = get(12_MiB);
  allocator_.record_stream(block, 1);
  allocator_.free(block);
  allocator_.process_events();
  const Allocation again = get(12_MiB);
  ASSERT_EQ(again.address, block.address);
  allocator_.free(again);
  EXPECT_EQ(stats().active_bytes.all.current, 0);
}

TEST_F(CachingAllocatorTest, ShowsSegmentsAndBlocksAsJson) {
  get(4_MiB);
  const std::string json = to_json(allocator_.snapshot());
  EXPECT_THAT(json, HasSubstr("\"total_size\": 20971520"));
  EXPECT_THAT(json, HasSubstr("\"state\": \"active_allocated\""));
  EXPECT_THAT(json, HasSubstr("\"segment_type\": \"large\""));
  EXPECT_THAT(to_json(stats()), HasSubstr("\"inactive_split_bytes\""));
}

TEST_F(CachingAllocatorTest, ReproducesThePublishedSnapshotOfACublasWorkspace) {
  // facts section 1.2: 8,519,680 B in a segment of 20,971,520 B, of which 12,451,840 B are left.
  EXPECT_EQ(get(8519680_B).bytes, 8519680_B);
  EXPECT_EQ(reserved(), 20971520_B);
  EXPECT_EQ(stats().inactive_split_bytes.all.current, 12451840);
}

}  // namespace
}  // namespace memfathom
