// What happens when the device is full: release and retry as PyTorch does, then one clear error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

AllocatorOptions max_split(Bytes size) {
  AllocatorOptions options;
  options.max_split_size = size;
  return options;
}

TEST(OutOfMemoryTest, ReleasesTheCacheAndRetriesBeforeGivingUp) {
  ArithmeticSegments source(40_MiB);
  CachingAllocator allocator(source);
  const Allocation a = allocator.allocate(20_MiB);
  allocator.free(a);
  allocator.allocate(30_MiB);  // 20 are cached and too small; 50 do not fit: the 20 go back
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 1);
  EXPECT_EQ(allocator.statistics().num_ooms, 0);
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (30_MiB).count());
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.peak, (30_MiB).count());
}

TEST(OutOfMemoryTest, ThrowsWithTheSizesWhenNothingHelps) {
  ArithmeticSegments source(64_MiB);
  CachingAllocator allocator(source);
  const Allocation kept = allocator.allocate(30_MiB);
  allocator.allocate(4_MiB);  // pins a segment of 20 MiB
  try {
    allocator.allocate(33_MiB);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_EQ(error.requested(), 34_MiB);  // the segment, not the request
    EXPECT_EQ(error.allocated(), 34_MiB);
    EXPECT_EQ(error.reserved(), 50_MiB);
    EXPECT_THAT(error.what(), HasSubstr(to_string(64_MiB)));
  }
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 1);
  EXPECT_EQ(allocator.statistics().num_ooms, 1);
  allocator.free(kept);  // the allocator stays usable
  allocator.allocate(33_MiB);
  EXPECT_EQ(allocator.statistics().num_ooms, 1);
}

TEST(OutOfMemoryTest, CannotReleaseASegmentThatIsPartlyUsed) {
  ArithmeticSegments source(40_MiB);
  CachingAllocator allocator(source);
  const Allocation a = allocator.allocate(9_MiB);
  allocator.allocate(9_MiB);
  allocator.free(a);  // 9 MiB are free, but in a segment that is in use
  EXPECT_THROW(allocator.allocate(22_MiB), OutOfMemory);
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (20_MiB).count());
}

TEST(OutOfMemoryTest, ReleasesTheCachesOfAllStreams) {
  ArithmeticSegments source(40_MiB);
  CachingAllocator allocator(source);
  allocator.free(allocator.allocate(16_MiB, 0));
  allocator.free(allocator.allocate(16_MiB, 1));
  allocator.allocate(40_MiB, 2);
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (40_MiB).count());
}

TEST(OutOfMemoryTest, WaitsForOtherStreamsBeforeGivingUp) {
  ArithmeticSegments source(40_MiB);
  CachingAllocator allocator(source);
  const Allocation a = allocator.allocate(30_MiB);
  allocator.record_stream(a, 1);
  allocator.free(a);
  allocator.allocate(40_MiB);
  EXPECT_EQ(allocator.statistics().active_bytes.all.current, (40_MiB).count());
}

TEST(OutOfMemoryTest, RefusesARequestThatNoDeviceCouldServe) {
  ArithmeticSegments source;
  CachingAllocator allocator(source);
  EXPECT_THROW(allocator.allocate(Bytes{std::numeric_limits<std::int64_t>::max()}), OutOfMemory);
  EXPECT_THROW(allocator.allocate(Bytes{(std::int64_t{1} << 55) + 1}), OutOfMemory);
  EXPECT_EQ(allocator.statistics().allocated_bytes.all.current, 0);
  for (int i = 0; i < 3; ++i) allocator.allocate(Bytes{std::int64_t{1} << 55});
  EXPECT_THROW(allocator.allocate(Bytes{std::int64_t{1} << 55}), OutOfMemory);  // no addresses left
}

// A source that refuses chosen requests, counted from 1.
class RefusingSegments final : public SegmentSource {
 public:
  explicit RefusingSegments(std::set<int> refused) : refused_(std::move(refused)) {}
  std::optional<std::uint64_t> allocate(Bytes size, int stream) override {
    if (refused_.count(++requests) > 0) return std::nullopt;
    return segments_.allocate(size, stream);
  }
  void release(std::uint64_t address, Bytes size) override { segments_.release(address, size); }
  std::optional<Bytes> capacity() const override { return std::nullopt; }
  Bytes held() const { return segments_.held(); }

  int requests = 0;

 private:
  std::set<int> refused_;
  ArithmeticSegments segments_;
};

TEST(OutOfMemoryTest, RecoversFromAnySegmentRequestThatFailsOnce) {
  for (int failing = 1; failing <= 3; ++failing) {
    RefusingSegments source({failing});
    CachingAllocator allocator(source);
    allocator.allocate(12_MiB);
    allocator.allocate(14_MiB);
    allocator.allocate(16_MiB);
    EXPECT_EQ(source.requests, 4);
    EXPECT_EQ(allocator.statistics().num_alloc_retries, 1);
    EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (42_MiB).count());
  }
}

TEST(OutOfMemoryTest, StaysUsableAfterARequestThatFailsForGood) {
  RefusingSegments source({2, 3});
  {
    CachingAllocator allocator(source);
    allocator.allocate(12_MiB);
    EXPECT_THROW(allocator.allocate(14_MiB), OutOfMemory);
    EXPECT_EQ(allocator.allocate(14_MiB).bytes, 14_MiB);
    EXPECT_EQ(allocator.statistics().allocated_bytes.all.current, (26_MiB).count());
  }
  EXPECT_EQ(source.held(), 0_B);
}

TEST(MaxSplitSizeTest, NeverSplitsALargerBlockNorUsesItForASmallRequest) {
  ArithmeticSegments source;
  CachingAllocator allocator(source, max_split(50_MiB));
  const Allocation large = allocator.allocate(80_MiB);
  allocator.free(large);
  EXPECT_NE(allocator.allocate(30_MiB).address, large.address);  // 80 >= 50 is kept for large ones
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (110_MiB).count());
  const Allocation again = allocator.allocate(65_MiB);  // 80 < 65 + 20: may be used, whole
  EXPECT_EQ(again.address, large.address);
  EXPECT_EQ(again.bytes, 80_MiB);
}

TEST(MaxSplitSizeTest, RefusesABlockThatExceedsTheRequestByTheRounding) {
  ArithmeticSegments source;
  CachingAllocator allocator(source, max_split(50_MiB));
  const Allocation large = allocator.allocate(80_MiB);
  allocator.free(large);
  EXPECT_NE(allocator.allocate(60_MiB).address, large.address);  // 80 >= 60 + 20
  AllocatorOptions wider = max_split(50_MiB);
  wider.max_non_split_rounding = 21_MiB;
  CachingAllocator other(source, wider);
  const Allocation block = other.allocate(80_MiB);
  other.free(block);
  EXPECT_EQ(other.allocate(60_MiB).address, block.address);  // 80 < 60 + 21
}

TEST(MaxSplitSizeTest, ReleasesTheSmallestSufficientBlockFirst) {
  ArithmeticSegments source(200_MiB);
  CachingAllocator allocator(source, max_split(30_MiB));
  const Allocation a = allocator.allocate(50_MiB);
  const Allocation b = allocator.allocate(70_MiB);
  const Allocation c = allocator.allocate(60_MiB);
  for (const Allocation& block : {a, b, c}) allocator.free(block);  // 180 of 200 MiB cached
  // 28 MiB are below the limit, so none of the cached blocks may serve; 30 MiB or more must go:
  // the 50 MiB one is the smallest. No full release, so this is not counted as a retry.
  allocator.allocate(28_MiB);
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 0);
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (158_MiB).count());
}

TEST(MaxSplitSizeTest, ReleasesSeveralBlocksFromTheLargestWhenNoneSuffices) {
  ArithmeticSegments source(200_MiB);
  CachingAllocator allocator(source, max_split(30_MiB));
  const Allocation a = allocator.allocate(50_MiB);
  const Allocation b = allocator.allocate(70_MiB);
  const Allocation c = allocator.allocate(60_MiB);
  for (const Allocation& block : {a, b, c}) allocator.free(block);
  allocator.allocate(100_MiB);  // 70, then 60: 130 >= 100
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 0);
  EXPECT_EQ(allocator.statistics().reserved_bytes.all.current, (150_MiB).count());
}

}  // namespace
}  // namespace memfathom
