#include "kernels/memory/trace/compare_histories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace memfathom {
namespace {

using enum HistoryDifferenceKind;

// A history from lines such as "+a 1000 aten.addmm" and "-a".
Trace history(const std::vector<std::string>& lines) {
  std::stringstream text;
  TraceWriter writer(text, false);
  std::map<std::string, std::int64_t> ids;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    TraceEvent event;
    event.phase = "forward";
    if (name.front() == '-') {
      event.op = TraceOp::kFree;
      event.id = ids.at(name.substr(1));
    } else {
      std::int64_t bytes = 0;
      words >> bytes >> event.name;
      event.bytes = Bytes{bytes};
      event.id = static_cast<std::int64_t>(ids.size() + 1);
      ids[name.substr(1)] = event.id;
    }
    writer.write(event);
  }
  writer.finish();
  return read_trace(text, "test");
}

const std::vector<std::string> kStep{"+w 4096 aten.empty",
                                     "+x 2000 aten.zeros",
                                     "+a 8000 aten.addmm",
                                     "+b 8000 aten.relu",
                                     "-a",
                                     "+c 600 aten.mean",
                                     "-b",
                                     "+d 4096 aten.mm",
                                     "-d",
                                     "-c",
                                     "-x"};

TEST(CompareHistoriesTest, EqualHistoriesHaveNoDifference) {
  const HistoryComparison same = compare_histories(history(kStep), history(kStep));
  EXPECT_EQ(same.recorded, 6u);
  EXPECT_EQ(same.equal, 6u);
  EXPECT_TRUE(same.differences.empty());
  EXPECT_FALSE(same.gave_up);
}

TEST(CompareHistoriesTest, SizesCountInTheAllocatorsBlocks) {
  std::vector<std::string> other = kStep;
  other[1] = "+x 2048 aten.zeros";  // the same four blocks of 512
  EXPECT_TRUE(compare_histories(history(kStep), history(other)).differences.empty());
  other[1] = "+x 2049 aten.zeros";
  const HistoryComparison larger = compare_histories(history(other), history(kStep));
  ASSERT_EQ(larger.differences.size(), 1u);
  EXPECT_EQ(larger.differences[0].kind, kSize);
  EXPECT_EQ(larger.differences[0].recorded.label.name, "aten.zeros");
  EXPECT_EQ(larger.differences[0].recorded.bytes, Bytes{2049});
  EXPECT_EQ(larger.differences[0].replayed.bytes, Bytes{2000});
  EXPECT_EQ(larger.equal, 5u);
}

TEST(CompareHistoriesTest, NamesTheOperationThatOnlyOneHistoryHas) {
  std::vector<std::string> more = kStep;
  more.insert(more.begin() + 3, {"+workspace 70000 aten.addmm_lt", "-workspace"});
  const HistoryComparison recorded = compare_histories(history(more), history(kStep));
  ASSERT_EQ(recorded.differences.size(), 1u);
  EXPECT_EQ(recorded.differences[0].kind, kOnlyRecorded);
  EXPECT_EQ(recorded.differences[0].recorded.label.name, "aten.addmm_lt");
  EXPECT_EQ(recorded.differences[0].recorded.number, 4u);
  EXPECT_EQ(recorded.differences[0].replayed.label.name, "aten.relu") << "what comes next there";
  EXPECT_EQ(recorded.equal, 6u);
  const HistoryComparison replayed = compare_histories(history(kStep), history(more));
  ASSERT_EQ(replayed.differences.size(), 1u);
  EXPECT_EQ(replayed.differences[0].kind, kOnlyReplayed);
  EXPECT_EQ(replayed.differences[0].replayed.label.name, "aten.addmm_lt");
}

TEST(CompareHistoriesTest, NoticesATensorThatLivesLonger) {
  std::vector<std::string> longer = kStep;
  longer.erase(longer.begin() + 4);  // -a
  longer.insert(longer.end() - 3, "-a");
  const HistoryComparison later = compare_histories(history(longer), history(kStep));
  ASSERT_EQ(later.differences.size(), 1u);
  EXPECT_EQ(later.differences[0].kind, kFreedLater);
  EXPECT_EQ(later.differences[0].recorded.label.name, "aten.addmm");
  EXPECT_EQ(later.equal, 5u);
  const HistoryComparison sooner = compare_histories(history(kStep), history(longer));
  ASSERT_EQ(sooner.differences.size(), 1u);
  EXPECT_EQ(sooner.differences[0].kind, kFreedSooner);
}

TEST(CompareHistoriesTest, TheOrderOfFreesBetweenTwoAllocationsDoesNotMatter) {
  std::vector<std::string> other = kStep;
  std::swap(other[8], other[10]);
  EXPECT_TRUE(compare_histories(history(kStep), history(other)).differences.empty());
  other.resize(8);  // a snapshot is taken while the last tensors live
  EXPECT_TRUE(compare_histories(history(other), history(kStep)).differences.empty());
}

TEST(CompareHistoriesTest, AllocationsOfNothingAreNoAllocations) {
  std::vector<std::string> other = kStep;
  other.insert(other.begin(), "+nothing 0 aten.empty");
  EXPECT_TRUE(compare_histories(history(other), history(kStep)).differences.empty());
}

TEST(CompareHistoriesTest, GivesUpWhereNothingIsInCommon) {
  std::vector<std::string> recorded = kStep;
  std::vector<std::string> replayed = kStep;
  for (int i = 0; i < 400; ++i) {
    recorded.push_back("+r" + std::to_string(i) + " 1024 aten.add");
    replayed.push_back("+r" + std::to_string(i) + " 9000 aten.mul");
  }
  const HistoryComparison parted = compare_histories(history(recorded), history(replayed));
  EXPECT_TRUE(parted.gave_up);
  ASSERT_EQ(parted.differences.size(), 1u) << "the first is named, the rest is not guessed at";
  EXPECT_EQ(parted.differences[0].recorded.label.name, "aten.add");
  EXPECT_EQ(parted.differences[0].replayed.label.name, "aten.mul");
  EXPECT_EQ(parted.differences[0].recorded.number, 7u);
}

TEST(CompareHistoriesTest, ListsABoundedNumberOfDifferences) {
  std::vector<std::string> recorded;
  std::vector<std::string> replayed;
  for (int i = 0; i < 3000; ++i) {
    for (int n = 0; n < 5; ++n) {
      const std::string line =
          "+t" + std::to_string(5 * i + n) + " " + std::to_string(1000 * (n + 1)) + " aten.add";
      recorded.push_back(line);
      if (n != 2) replayed.push_back(line);
    }
  }
  const HistoryComparison many = compare_histories(history(recorded), history(replayed));
  EXPECT_TRUE(many.gave_up);
  EXPECT_EQ(many.differences.size(), kMaxHistoryDifferences);
}

}  // namespace
}  // namespace memfathom
