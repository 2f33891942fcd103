#include "kernels/allocator/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/document.h"
#include "kernels/allocator/arithmetic_segments.h"
#include "kernels/allocator/bare_allocator.h"
#include "kernels/allocator/caching_allocator.h"
#include "kernels/allocator/tracing_allocator.h"
#include "tests/kernels/allocator/reference_allocator.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using namespace literals;

Trace read(const std::string& events) {
  std::istringstream input("{}\n" + events);
  return read_trace(input, "step.jsonl");
}

constexpr const char* kStep =
    "{\"op\":\"alloc\",\"id\":1,\"bytes\":1000,\"phase\":\"load\"}\n"
    "{\"op\":\"alloc\",\"id\":2,\"bytes\":3000,\"phase\":\"forward\"}\n"
    "{\"op\":\"alloc\",\"id\":3,\"bytes\":500,\"phase\":\"forward\"}\n"
    "{\"op\":\"free\",\"id\":2,\"phase\":\"forward\"}\n"
    "{\"op\":\"free\",\"id\":3,\"phase\":\"backward\"}\n"
    "{\"op\":\"alloc\",\"id\":4,\"bytes\":100,\"phase\":\"forward\"}\n";

TEST(ReplayTest, ReportsThePeaksOfEveryPhase) {
  BareAllocator allocator;
  const ReplayResult result = replay(read(kStep), allocator);
  ASSERT_EQ(result.spans.size(), 4u);
  EXPECT_EQ(result.spans[0].allocated, 1024_B);
  EXPECT_EQ(result.spans[1].allocated, 1024_B + 3072_B + 512_B);
  EXPECT_EQ(result.spans[1].peak_event, 2u);
  EXPECT_EQ(result.spans[1].requested, 4500_B);
  EXPECT_EQ(result.spans[2].phase, "backward");
  EXPECT_EQ(result.spans[2].allocated, 1536_B);  // what it began with
  EXPECT_EQ(result.spans[2].peak_event, 4u);
  EXPECT_EQ(result.spans[3].iteration, 2);
  EXPECT_EQ(result.spans[3].allocated, 1536_B);
  EXPECT_EQ(result.peak_allocated(), 4608_B);
  EXPECT_EQ(result.peak_allocated(1), 4608_B);
  EXPECT_EQ(result.peak_allocated(2), 1536_B);
  EXPECT_EQ(result.peak_allocated(3), 0_B);
  EXPECT_EQ(result.statistics.allocated_bytes.all.current, 1536);  // ids 1 and 4 stay
}

class FixedWorkspace final : public WorkspaceModel {
 public:
  WorkspaceAnswer convolution(const ConvolutionQuery& query) const override {
    return {query.kind == ConvolutionKind::kDataGradient ? 10_MiB : 30_MiB, Source::kMeasured};
  }
  WorkspaceAnswer fft(const FftQuery&) const override { return {}; }
};

TEST(ReplayTest, TakesWorkspacesWhereTheCallsWereRecorded) {
  const Trace trace = read(
      R"({"op":"alloc","id":1,"bytes":1048576,"phase":"backward","conv":{"kinds":["data_gradient","weight_gradient"],"input":[2,3,8,8],"weight":[4,3,3,3]}})"
      "\n"
      R"({"op":"alloc","id":2,"bytes":2097152})"
      "\n");
  BareAllocator without;
  EXPECT_EQ(replay(trace, without).peak_allocated(), 3_MiB);
  BareAllocator with;
  const ReplayResult result = replay(trace, with, std::make_unique<FixedWorkspace>().get());
  EXPECT_EQ(result.peak_allocated(), 33_MiB);  // the second call's 30 beside both gradients
  EXPECT_EQ(result.statistics.allocated_bytes.all.current, (3_MiB).count());
}

TEST(ReplayTest, StopsWithOutOfMemoryOnASmallDevice) {
  ArithmeticSegments source(1_MiB);
  CachingAllocator allocator(source);
  EXPECT_THROW(replay(read(kStep), allocator), OutOfMemory);
}

TEST(ReplayTest, ARecordedReplayIsTheTraceAgain) {
  const Trace trace = read(kStep);
  std::stringstream file;
  TraceWriter writer(file, true);
  BareAllocator inner;
  TracingAllocator recorder(inner, writer);
  replay(trace, recorder);
  writer.finish();
  const Trace again = read_trace(file, "again.jsonl.gz");
  ASSERT_EQ(again.events.size(), trace.events.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    EXPECT_EQ(again.events[i].bytes, trace.events[i].bytes);
    EXPECT_EQ(again.events[i].slot, trace.events[i].slot);
  }
}

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

TEST_P(OracleTraceTest, BareReplayGivesTheTablesPeaksToTheByte) {
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
