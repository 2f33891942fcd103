// Replays the shared recorded traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/document.h"
#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/trace/replay.h"
#include "tests/kernels/memory/allocator/reference_allocator.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using namespace literals;

std::vector<std::filesystem::path> oracle_traces() {
  std::vector<std::filesystem::path> paths;
  std::error_code missing;  // reported by a test below, not by a crash before the first one
  for (const auto& entry :
       std::filesystem::directory_iterator(shared_data() / "oracle/traces", missing)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(OracleTracesTest, ArePresent) {
  EXPECT_EQ(oracle_traces().size(), 9u) << "expected in " << shared_data() / "oracle/traces";
}

class OracleTraceTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(OracleTraceTest, BareReplayEqualsThePeaksOfTheTable) {
  const Trace trace = load_trace(GetParam().string());
  const Node header = parse_json(trace.header, GetParam().string());
  BareAllocator allocator;
  const ReplayResult result = replay(trace, allocator);
  EXPECT_EQ(result.peak_allocated(1).count(), header.at("peak_iter1").as_int());
  EXPECT_EQ(result.peak_allocated(2).count(), header.at("peak").as_int());
}

TEST_P(OracleTraceTest, CachingReplayEqualsTheReferenceEventByEvent) {
  const Trace trace = load_trace(GetParam().string());
  for (const bool expandable : {false, true}) {
    ArithmeticSegments source;
    ArithmeticSegments reference_source;
    AllocatorOptions options;
    options.expandable_segments = expandable;
    CachingAllocator allocator(source, options);
    testing::ReferenceOptions reference_options;
    reference_options.expandable = expandable;
    testing::ReferenceAllocator reference(reference_source, reference_options);
    std::vector<Allocation> live(trace.slots);
    std::vector<testing::ReferenceAllocator::Block*> expected(trace.slots);
    for (const Trace::Event& event : trace.events) {
      if (event.is_free()) {
        allocator.free(live[event.slot]);
        if (expected[event.slot] != nullptr) reference.free(expected[event.slot]);
        continue;
      }
      live[event.slot] = allocator.allocate(Bytes{event.bytes}, event.stream);
      expected[event.slot] = event.bytes == 0 ? nullptr : reference.allocate(event.bytes, 0);
      if (event.bytes == 0) continue;
      ASSERT_EQ(live[event.slot].address,
                static_cast<std::uint64_t>(expected[event.slot]->address));
      ASSERT_EQ(live[event.slot].bytes.count(), expected[event.slot]->size);
    }
    const AllocatorStatistics& statistics = allocator.statistics();
    EXPECT_EQ(statistics.allocated_bytes.all.peak, reference.peak);
    EXPECT_EQ(statistics.reserved_bytes.all.current, reference.totals().reserved);
    EXPECT_GE(statistics.reserved_bytes.all.peak, statistics.allocated_bytes.all.peak);
  }
}

TEST_P(OracleTraceTest, ExpandableSegmentsChargeNoSlackAndReserveWholePages) {
  // Reserved exceeds the peak by less than a page per pool and what fragmentation leaves: on these
  // traces together within a quarter of the peak and two pages.
  const Trace trace = load_trace(GetParam().string());
  BareAllocator bare;
  const Bytes peak = replay(trace, bare).peak_allocated();
  ArithmeticSegments source;
  AllocatorOptions options;
  options.expandable_segments = true;
  CachingAllocator allocator(source, options);
  const ReplayResult result = replay(trace, allocator);
  EXPECT_EQ(result.peak_allocated(), peak);  // no slack is ever charged
  EXPECT_EQ(result.statistics.reserved_bytes.large_pool.peak % (20_MiB).count(), 0);
  EXPECT_EQ(result.statistics.reserved_bytes.small_pool.peak % (2_MiB).count(), 0);
  EXPECT_LE(result.peak_reserved().count(), peak.count() * 5 / 4 + (42_MiB).count());
}

INSTANTIATE_TEST_SUITE_P(All, OracleTraceTest, ::testing::ValuesIn(oracle_traces()),
                         [](const auto& trace) {
                           const std::string name = trace.param.filename().string();
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace memfathom
