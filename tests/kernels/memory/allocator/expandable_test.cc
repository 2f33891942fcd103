// Expandable segments: one range of addresses per stream and pool that grows and shrinks by pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace memfathom {
namespace {

using namespace literals;

class ExpandableSegmentsTest : public ::testing::Test {
 protected:
  static AllocatorOptions options() {
    AllocatorOptions options;
    options.expandable_segments = true;
    return options;
  }
  Allocation get(Bytes size, int stream = 0) { return allocator_.allocate(size, stream); }
  Bytes reserved() const { return Bytes{allocator_.statistics().reserved_bytes.all.current}; }

  ArithmeticSegments source_{400_MiB};
  CachingAllocator allocator_{source_, options()};
};

TEST_F(ExpandableSegmentsTest, GrowsBy2MiBInTheSmallPoolAndBy20MiBInTheLargeOne) {
  get(600_KiB);
  EXPECT_EQ(reserved(), 2_MiB);
  get(1_MiB);
  EXPECT_EQ(reserved(), 2_MiB);
  get(1_MiB);  // 424 KiB are left, so 600 KiB are missing: one page more
  EXPECT_EQ(reserved(), 4_MiB);
  get(15_MiB);
  EXPECT_EQ(reserved(), 24_MiB);
  get(30_MiB);  // 5 MiB are left, 25 missing: two pages
  EXPECT_EQ(reserved(), 64_MiB);
}

TEST_F(ExpandableSegmentsTest, ExtendsTheFreeBlockAtTheEnd) {
  const Allocation a = get(15_MiB);
  const Allocation b = get(30_MiB);
  EXPECT_EQ(b.address, a.address + (15 << 20));
  EXPECT_EQ(b.bytes, 30_MiB);  // no slack: the rest, 15 MiB, is split off even down to 512 B
  EXPECT_EQ(get(15_MiB - 512_B).bytes, 15_MiB - 512_B);
  EXPECT_EQ(get(512_B).bytes, 512_B);  // from the small pool
  EXPECT_EQ(reserved(), 62_MiB);
}

TEST_F(ExpandableSegmentsTest, PrefersAHoleToTheGrowingEnd) {
  const Allocation a = get(8_MiB);
  get(2_MiB);  // pins what follows; 10 MiB are left at the end of 20
  allocator_.free(a);
  get(3_MiB);   // the hole of 8 MiB is smaller than the end of 10: it leaves 5
  get(11_MiB);  // 10 + 20 more: the end is now 19 MiB
  EXPECT_EQ(reserved(), 40_MiB);
  // A request for 4 MiB: the hole of 5 fits, the end counts as 19 MiB and all that is unmapped.
  EXPECT_EQ(get(4_MiB).address, a.address + (3 << 20));
}

TEST_F(ExpandableSegmentsTest, TakesALargerHoleBeforeTheGrowingEnd) {
  const Allocation a = get(12_MiB);
  get(2_MiB);  // 6 MiB are left at the end of the mapped 20
  allocator_.free(a);
  // Best fit for 5 MiB would be the end with 6, but that could grow to all of the range.
  EXPECT_EQ(get(5_MiB).address, a.address);
}

TEST_F(ExpandableSegmentsTest, SharesAddressesOnlyWithinAStream) {
  const Allocation a = get(15_MiB, 0);
  const Allocation b = get(15_MiB, 1);
  EXPECT_EQ(reserved(), 40_MiB);
  // Each range spans the device and an eighth more: 450 MiB, in pages of 20 MiB.
  EXPECT_EQ(b.address - a.address, 460u << 20);
}

TEST_F(ExpandableSegmentsTest, EmptyCacheUnmapsOnlyWholeFreePages) {
  const Allocation a = get(50_MiB);
  const Allocation b = get(5_MiB);  // [50, 55) of 60 mapped
  allocator_.free(a);
  allocator_.empty_cache();  // pages [0, 20) and [20, 40) are free; [40, 60) is shared
  EXPECT_EQ(reserved(), 20_MiB);
  EXPECT_EQ(source_.held(), 20_MiB);
  allocator_.free(b);
  allocator_.empty_cache();
  EXPECT_EQ(reserved(), 0_B);
  EXPECT_TRUE(allocator_.snapshot().segments.empty());
}

TEST_F(ExpandableSegmentsTest, RemapsGapsAtTheLowestAddress) {
  const Allocation a = get(50_MiB);
  get(5_MiB);
  allocator_.free(a);
  allocator_.empty_cache();
  const Allocation c = get(35_MiB);  // fits the unmapped 40 MiB at the front
  EXPECT_EQ(c.address, a.address);
  EXPECT_EQ(reserved(), 60_MiB);
  EXPECT_EQ(get(15_MiB).address, a.address + (35 << 20));  // [35, 50) was free again
  EXPECT_EQ(reserved(), 60_MiB);
}

TEST_F(ExpandableSegmentsTest, UnmapsFreePagesWhenTheDeviceIsFull) {
  const Allocation a = get(200_MiB, 0);
  allocator_.free(a);
  get(300_MiB, 1);  // 200 + 300 > 400: the 200 are unmapped first
  EXPECT_EQ(reserved(), 300_MiB);
  EXPECT_EQ(allocator_.statistics().num_alloc_retries, 1);
  EXPECT_THROW(get(120_MiB, 0), OutOfMemory);
  EXPECT_EQ(get(100_MiB, 0).bytes, 100_MiB);
}

TEST_F(ExpandableSegmentsTest, DoesNotCountInactiveSplits) {
  get(15_MiB);
  EXPECT_EQ(allocator_.statistics().inactive_split_bytes.all.current, 0);
  EXPECT_EQ(allocator_.statistics().segment.all.current, 0);
}

class PlainSegments final : public SegmentSource {
 public:
  std::optional<std::uint64_t> allocate(Bytes, int) override { return std::nullopt; }
  void release(std::uint64_t, Bytes) override {}
  std::optional<Bytes> capacity() const override { return std::nullopt; }
};

TEST(ExpandableSegmentsRefusalTest, ReportsASourceThatCannotMap) {
  PlainSegments source;
  AllocatorOptions options;
  options.expandable_segments = true;
  try {
    CachingAllocator allocator(source, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("expandable_segments"));
  }
  EXPECT_THROW(source.reserve(2_MiB), Error);
  EXPECT_THROW(source.map(0, 2_MiB, 2_MiB), Error);
}

TEST(ExpandableSegmentsOverMmapTest, MemoryIsWritableAndZeroedAfterRemapping) {
  MmapSegments source(64_MiB);
  AllocatorOptions options;
  options.expandable_segments = true;
  {
    CachingAllocator allocator(source, options);
    const Allocation a = allocator.allocate(30_MiB);
    static_cast<char*>(a.data())[(30 << 20) - 1] = 7;
    allocator.free(a);
    allocator.empty_cache();
    EXPECT_EQ(source.held(), 0_B);
    const Allocation b = allocator.allocate(30_MiB);
    EXPECT_EQ(static_cast<char*>(b.data())[(30 << 20) - 1], 0);
    EXPECT_THROW(allocator.allocate(40_MiB), OutOfMemory);  // 40 mapped, 10 of them free
  }
  EXPECT_EQ(source.held(), 0_B);
}

}  // namespace
}  // namespace memfathom
