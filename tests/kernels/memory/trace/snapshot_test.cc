#include "kernels/memory/trace/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "kernels/memory/trace/peak_holders.h"
#include "kernels/memory/trace/pickle.h"
#include "kernels/memory/trace/snapshot_writer.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

std::string path_of(const std::string& name) {
  return (project_directory() / "tests/fuzz/corpus/snapshot_fuzz" / name).string();
}

// Written by Python's pickle: two allocations, a free, a block from before the history, a step.
std::string sample(const std::string& name) {
  std::ifstream file(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string refusal(const std::string& bytes) {
  try {
    read_snapshot(bytes, "snapshot.pickle");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST(SnapshotTest, ReadsTheHistoryOfEitherProtocol) {
  for (const char* name : {"protocol_2.pickle", "protocol_4.pickle"}) {
    const std::string bytes = sample(name);
    EXPECT_TRUE(is_pickle(bytes));
    const Trace trace = read_snapshot(bytes, name);
    ASSERT_EQ(trace.events.size(), 7u) << name;
    // Alive at the end, and freed in the history, without having been allocated in it.
    EXPECT_EQ(trace.label_of(0).name, "before the history");
    EXPECT_EQ(trace.events[0].bytes, 1000);
    EXPECT_EQ(trace.events[1].bytes, 777);
    EXPECT_EQ(trace.events[2].bytes, 2048);
    EXPECT_EQ(trace.label_of(2).name, "aten.addmm");
    EXPECT_EQ(trace.label_of(2).line, "train.py:17");
    EXPECT_TRUE(trace.events[4].is_free());
    EXPECT_EQ(trace.events[6].bytes, 512);
    ASSERT_EQ(trace.spans.size(), 4u);
    EXPECT_EQ(trace.spans[0].phase, "load");
    EXPECT_EQ(trace.spans[1].phase, "forward");
    EXPECT_EQ(trace.spans[2].phase, "backward");
    EXPECT_EQ(trace.spans[3].phase, "step");
  }
}

TEST(SnapshotTest, IsReadWhereATraceIsExpected) {
  EXPECT_EQ(load_trace(path_of("protocol_4.pickle")).events.size(), 7u);
}

TEST(SnapshotTest, TellsTheLastFailureAndTheSegments) {
  const Snapshot snapshot = read_whole_snapshot(sample("failure.pickle"), "failure.pickle");
  ASSERT_TRUE(snapshot.failure.has_value());
  EXPECT_EQ(snapshot.failure->requested, 5_MiB);
  EXPECT_EQ(snapshot.failure->device_free, 1_MiB);
  EXPECT_EQ(snapshot.failure->line, "train.py:19");
  EXPECT_EQ(snapshot.reserved, 20_MiB);
  EXPECT_EQ(snapshot.allocated, 14_MiB);
  EXPECT_EQ(snapshot.largest_free_block, 4_MiB);
  // Alive at the failure, not at the peak: what was freed between is gone.
  const PeakHolders alive =
      holders_after(snapshot.trace, snapshot.failure->events, HolderKey::kLine);
  EXPECT_EQ(alive.bytes, 14_MiB);
  ASSERT_EQ(alive.holders.size(), 2u);
  EXPECT_EQ(alive.holders[0].name, "train.py:17");
  EXPECT_EQ(alive.holders[0].bytes, 8_MiB);
  EXPECT_EQ(peak_holders(snapshot.trace, HolderKey::kLine).bytes, 18_MiB);
}

TEST(SnapshotTest, HasNoFailureWhereNothingFailed) {
  EXPECT_FALSE(read_whole_snapshot(sample("protocol_4.pickle"), "a").failure.has_value());
}

TEST(SnapshotTest, IsWrittenAsItIsRead) {
  const Snapshot before = read_whole_snapshot(sample("failure.pickle"), "failure.pickle");
  std::ostringstream file;
  write_snapshot(before.trace, file);
  const Snapshot after = read_whole_snapshot(file.str(), "written.pickle");
  ASSERT_EQ(after.trace.events.size(), before.trace.events.size());
  for (std::size_t i = 0; i < before.trace.events.size(); ++i) {
    EXPECT_EQ(after.trace.events[i].bytes, before.trace.events[i].bytes) << i;
    EXPECT_EQ(after.trace.label_of(i).line, before.trace.label_of(i).line) << i;
  }
  EXPECT_EQ(after.allocated, 14_MiB);
  EXPECT_GE(after.reserved, 18_MiB);
}

TEST(SnapshotTest, ReadsThePrivatePoolsOfCudaGraphs) {
  std::istringstream lines(
      "{}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":31457280}\n"
      "{\"op\":\"alloc\",\"id\":2,\"bytes\":31457280,\"pool\":7}\n"
      "{\"op\":\"free\",\"id\":1}\n"
      "{\"op\":\"alloc\",\"id\":3,\"bytes\":1000}\n");
  std::ostringstream file;
  write_snapshot(read_trace(lines, "graph.jsonl"), file);
  const Snapshot snapshot = read_whole_snapshot(file.str(), "graph.pickle");
  ASSERT_EQ(snapshot.trace.pools.size(), 2u);
  EXPECT_EQ(snapshot.trace.pools[0].first_event, 1u);
  EXPECT_EQ(snapshot.trace.pools[0].pool, 1) << "numbered as they come";
  EXPECT_EQ(snapshot.trace.pools[1].pool, 0);
  EXPECT_EQ(snapshot.reserved, 62_MiB);
}

TEST(HostileSnapshotTest, RunsNothing) {
  EXPECT_THAT(refusal(sample("reduce.pickle")), HasSubstr("nothing is run"));
}

TEST(HostileSnapshotTest, RefusesWhatIsCutShortOrHasNoHistory) {
  const std::string whole = sample("protocol_4.pickle");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
  EXPECT_THAT(refusal("\x80\x02}."), HasSubstr("_record_memory_history"));
  EXPECT_THAT(refusal(sample("circle.pickle")), HasSubstr("snapshot"));
}

TEST(HostileSnapshotTest, RefusesStacksThatAreOutOfOrder) {
  EXPECT_THAT(refusal("\x80\x02."), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal("\x80\x02u."), HasSubstr("a mark is missing"));
  EXPECT_THAT(refusal("\x80\x02}(K\x01u."), HasSubstr("a key without a value"));
  EXPECT_THAT(refusal("\x80\x02Na."), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal("\x80\x02NNa."), HasSubstr("neither a list nor a dict"));
  EXPECT_THAT(refusal("\x80\x02h\x07."), HasSubstr("memo 7 was never written"));
  EXPECT_THAT(refusal("\x80\x02Nr\xff\xff\xff\x7f."), HasSubstr("is not the next one"));
}

TEST(PickleTest, ReadsNumbersOfAllForms) {
  const Pickle numbers(std::string("\x80\x02(K\x07M\x00\x01J\xff\xff\xff\xff\x8a\x01\xfe"
                                   "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"
                                   "G\x3f\xf8\x00\x00\x00\x00\x00\x00\x88t.",
                                   39),
                       "numbers");
  const auto items = numbers.list(&numbers.root());
  ASSERT_EQ(items.size(), 7u);
  EXPECT_EQ(items[0]->integer, 7);
  EXPECT_EQ(items[1]->integer, 256);
  EXPECT_EQ(items[2]->integer, -1);
  EXPECT_EQ(items[3]->integer, -2);
  EXPECT_EQ(static_cast<std::uint64_t>(items[4]->integer), std::uint64_t{1} << 63U);
  EXPECT_EQ(items[5]->real, 1.5);
  EXPECT_EQ(items[6]->integer, 1);
}

}  // namespace
}  // namespace memfathom
