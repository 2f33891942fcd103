#include "kernels/memory/trace/peak_holders.h"

#include <gtest/gtest.h>

#include <sstream>

namespace memfathom {
namespace {

using namespace literals;

constexpr const char* kTwoIterations = R"({}
{"op":"phase","name":"load","iteration":0}
{"op":"alloc","id":1,"bytes":1000,"name":"aten.empty","module":"fc","line":"train.py:3"}
{"op":"phase","name":"forward","iteration":1}
{"op":"alloc","id":2,"bytes":90000,"name":"aten.sort"}
{"op":"free","id":2}
{"op":"phase","name":"forward","iteration":2}
{"op":"alloc","id":3,"bytes":2048,"name":"aten.addmm","module":"fc","line":"train.py:7"}
{"op":"alloc","id":4,"bytes":512,"name":"aten.addmm","module":"head","line":"train.py:8"}
{"op":"free","id":3}
{"op":"free","id":4}
)";

PeakHolders holders(const std::string& text, HolderKey key) {
  std::istringstream input(text);
  return peak_holders(read_trace(input, "step.jsonl"), key);
}

TEST(PeakHoldersTest, GroupsWhatIsAliveAtThePeakOfTheSteadyState) {
  const PeakHolders by_module = holders(kTwoIterations, HolderKey::kModule);
  EXPECT_EQ(by_module.phase, "forward");
  EXPECT_EQ(by_module.iteration, 2);
  EXPECT_EQ(by_module.bytes, 1024_B + 2048_B + 512_B);
  ASSERT_EQ(by_module.holders.size(), 2u);
  EXPECT_EQ(by_module.holders[0].name, "fc");
  EXPECT_EQ(by_module.holders[0].bytes, 3072_B);
  EXPECT_EQ(by_module.holders[0].storages, 2u);
  EXPECT_EQ(by_module.holders[1].name, "head");
}

TEST(PeakHoldersTest, GroupsByOperationAndByLine) {
  EXPECT_EQ(holders(kTwoIterations, HolderKey::kOperation).holders[0].name, "aten.addmm");
  const PeakHolders by_line = holders(kTwoIterations, HolderKey::kLine);
  ASSERT_EQ(by_line.holders.size(), 3u);
  EXPECT_EQ(by_line.holders[0].name, "train.py:7");
}

TEST(PeakHoldersTest, TakesTheWholeTraceWithoutASecondIteration) {
  const PeakHolders only = holders(
      "{}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"phase\":\"forward\"}\n", HolderKey::kModule);
  EXPECT_EQ(only.bytes, 512_B);
  EXPECT_EQ(only.holders[0].name, "");
}

}  // namespace
}  // namespace memfathom
