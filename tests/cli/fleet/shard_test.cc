#include "cli/estimate/shard.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"

namespace memfathom {
namespace {

// The lines of a part, as estimate --batch reads them.
std::string lines_of(const std::string& text, const Shard& shard, int* lines_before = nullptr) {
  std::istringstream input(text);
  const ShardRange range = begin_shard(input, "jobs", shard);
  if (lines_before != nullptr) *lines_before = range.lines_before;
  std::string read;
  std::string line;
  std::int64_t consumed = 0;
  while (consumed < range.bytes && std::getline(input, line)) {
    consumed += static_cast<std::int64_t>(line.size()) + 1;
    read += line + "\n";
  }
  return read;
}

TEST(ShardTest, AllPartsTogetherAreTheFileWhateverTheirNumber) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += std::string(static_cast<std::size_t>(i * 7 % 23), 'x') + "\n";
  for (std::int64_t count = 1; count < 80; ++count) {
    std::string joined;
    for (std::int64_t i = 0; i < count; ++i) joined += lines_of(text, {i, count});
    EXPECT_EQ(joined, text) << count;
  }
}

TEST(ShardTest, ALastLineWithoutNewlineBelongsToOnePart) {
  std::string joined;
  for (std::int64_t i = 0; i < 3; ++i) joined += lines_of("aaa\nbbb\ncccccccc", {i, 3});
  EXPECT_EQ(joined, "aaa\nbbb\ncccccccc\n");
}

TEST(ShardTest, CountsTheLinesBeforeThePart) {
  int before = 0;
  EXPECT_EQ(lines_of("a\nb\nc\nd\n", {1, 2}, &before), "c\nd\n");
  EXPECT_EQ(before, 2);
}

TEST(ShardTest, RefusesPartsThatDoNotExist) {
  for (const char* text : {"", "3", "3/3", "-1/3", "1/0", "a/b", "1/2/3", "0/1000001"})
    EXPECT_THROW(parse_shard(text), Error) << text;
  EXPECT_EQ(parse_shard("2/3").index, 2);
}

}  // namespace
}  // namespace memfathom
