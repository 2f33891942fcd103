#include "kernels/memory/trace/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/trace/tracing_allocator.h"

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

// A warm-up iteration, then its capture: the graph keeps memory of its own.
TEST(ReplayTest, AllocationsOfACaptureComeFromAPrivatePool) {
  constexpr const char* kCaptured =
      "{\"op\":\"alloc\",\"id\":1,\"bytes\":31457280}\n"
      "{\"op\":\"free\",\"id\":1}\n"
      "{\"op\":\"alloc\",\"id\":2,\"bytes\":31457280,\"pool\":1}\n"
      "{\"op\":\"free\",\"id\":2}\n"
      "{\"op\":\"alloc\",\"id\":3,\"bytes\":31457280}\n";
  const Trace trace = read(kCaptured);
  ASSERT_EQ(trace.pools.size(), 2u);
  EXPECT_EQ(trace.pools[0].first_event, 2u);
  EXPECT_EQ(trace.pools[0].pool, 1);
  EXPECT_EQ(trace.pools[1].pool, 0);
  ArithmeticSegments segments;
  CachingAllocator allocator(segments);
  const ReplayResult result = replay(trace, allocator);
  EXPECT_EQ(result.peak_reserved(), 60_MiB);
  EXPECT_EQ(result.peak_allocated(), 30_MiB);
}

TEST(ReplayTest, APoolIsANumber) {
  EXPECT_THROW(read("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"pool\":-1}\n"), Error);
  EXPECT_THROW(read("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"pool\":\"graph\"}\n"), Error);
}

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
  WorkspaceSize convolution(const ConvolutionQuery& query) const override {
    return {query.kind == ConvolutionKind::kDataGradient ? 10_MiB : 30_MiB, Source::kMeasured};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
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

TEST(ReplayTest, RecordedReplayEqualsTheTrace) {
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

}  // namespace
}  // namespace memfathom
