#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "core/error.h"
#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace memfathom {
namespace {

using namespace literals;

TEST(ArithmeticSegmentsTest, PlacesSegmentsAtIncreasingAlignedAddresses) {
  ArithmeticSegments source;
  const std::uint64_t a = *source.allocate(2_MiB, 0);
  const std::uint64_t b = *source.allocate(3_MiB, 0);
  const std::uint64_t c = *source.allocate(2_MiB, 0);
  EXPECT_NE(a, 0u);
  EXPECT_EQ(a % (2 << 20), 0u);
  EXPECT_EQ(b, a + (2 << 20));
  EXPECT_EQ(c, b + (4 << 20));  // 3 MiB take two pages of 2 MiB
  EXPECT_EQ(source.held(), 7_MiB);
}

TEST(ArithmeticSegmentsTest, ReusesReleasedAddressesMergedWithTheirNeighbours) {
  ArithmeticSegments source;
  const std::uint64_t a = *source.allocate(4_MiB, 0);
  const std::uint64_t b = *source.allocate(6_MiB, 0);
  const std::uint64_t c = *source.allocate(8_MiB, 0);
  source.allocate(2_MiB, 0);
  source.release(a, 4_MiB);
  source.release(c, 8_MiB);
  source.release(b, 6_MiB);
  EXPECT_EQ(*source.allocate(18_MiB, 0), a);
  EXPECT_EQ(source.held(), 20_MiB);
}

TEST(ArithmeticSegmentsTest, RefusesRequestsBeyondItsCapacity) {
  ArithmeticSegments source(10_MiB);
  const std::uint64_t a = *source.allocate(6_MiB, 0);
  EXPECT_FALSE(source.allocate(6_MiB, 0));
  EXPECT_TRUE(source.allocate(4_MiB, 0));
  source.release(a, 6_MiB);
  EXPECT_TRUE(source.map(source.reserve(100_MiB), 6_MiB, 2_MiB));  // addresses cost nothing
  EXPECT_FALSE(source.map(0, 2_MiB, 2_MiB));
  EXPECT_THROW(ArithmeticSegments(Bytes{-1}), Error);
}

TEST(ArithmeticSegmentsTest, NeverHandsOutOverlappingRanges) {
  ArithmeticSegments source;
  std::mt19937_64 random(3);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const std::uint64_t size = 1 + random() % (40 << 20);
      const std::uint64_t address = *source.allocate(Bytes{static_cast<std::int64_t>(size)}, 0);
      const auto after = live.lower_bound(address);
      ASSERT_TRUE(after == live.end() || address + size <= after->first);
      ASSERT_TRUE(after == live.begin() ||
                  std::prev(after)->first + std::prev(after)->second <= address);
      live.emplace(address, size);
    } else {
      auto victim = live.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % live.size()));
      source.release(victim->first, Bytes{static_cast<std::int64_t>(victim->second)});
      live.erase(victim);
    }
  }
}

std::size_t resident_pages(std::uint64_t address, std::size_t size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((size + page - 1) / page);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(address), size, pages.data()), 0);
  std::size_t resident = 0;
  for (const unsigned char state : pages) resident += state & 1U;
  return resident;
}

TEST(MmapSegmentsTest, ReservedMemoryIsResidentFromTheStart) {
  MmapSegments source;
  const std::uint64_t address = *source.allocate(8_MiB, 0);
  EXPECT_EQ(resident_pages(address, 8 << 20),
            (8u << 20) / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(source.held(), 8_MiB);
  source.release(address, 8_MiB);
  EXPECT_EQ(source.held(), 0_B);
}

TEST(MmapSegmentsTest, ServesACachingAllocatorWithMemoryThatHoldsData) {
  MmapSegments source(64_MiB);
  {
    CachingAllocator allocator(source);
    const Allocation a = allocator.allocate(3_MiB);
    const Allocation b = allocator.allocate(100_B);
    static_cast<char*>(a.data())[(3 << 20) - 1] = 1;
    static_cast<char*>(b.data())[511] = 2;
    EXPECT_EQ(static_cast<char*>(a.data())[(3 << 20) - 1], 1);
    EXPECT_THROW(allocator.allocate(50_MiB), OutOfMemory);
  }
  EXPECT_EQ(source.held(), 0_B);
}

TEST(BareAllocatorTest, CountsEachTensorRoundedUpTo512AndNothingElse) {
  BareAllocator allocator;
  const Allocation a = allocator.allocate(1_B);
  const Allocation b = allocator.allocate(11_MiB + 1_B);
  EXPECT_EQ(a.bytes, 512_B);
  EXPECT_EQ(b.bytes, 11_MiB + 512_B);
  EXPECT_NE(a.address, b.address);
  allocator.free(b);
  const AllocatorStatistics& statistics = allocator.statistics();
  EXPECT_EQ(statistics.allocated_bytes.all.current, 512);
  EXPECT_EQ(statistics.allocated_bytes.all.peak, (11_MiB + 1024_B).count());
  EXPECT_EQ(statistics.requested_bytes.all.peak, (11_MiB + 2_B).count());
  EXPECT_EQ(statistics.reserved_bytes, statistics.allocated_bytes);
  EXPECT_EQ(statistics.segment.all.peak, 0);
}

TEST(BareAllocatorTest, AllocatesNothingForZeroBytesAndRefusesMisuse) {
  BareAllocator allocator;
  const Allocation nothing = allocator.allocate(0_B);
  EXPECT_FALSE(nothing);
  allocator.free(nothing);
  EXPECT_EQ(allocator.statistics(), AllocatorStatistics{});
  const Allocation a = allocator.allocate(5_B);
  allocator.free(a);
  EXPECT_THROW(allocator.free(a), Error);
  EXPECT_THROW(allocator.allocate(Bytes{-1}), Error);
  EXPECT_THROW(allocator.allocate(Bytes{std::int64_t{1} << 61}), OutOfMemory);
}

}  // namespace
}  // namespace memfathom
