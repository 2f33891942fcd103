#include "core/read_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/error.h"

namespace memfathom {
namespace {

TEST(ReadLineTest, ReadsLinesWithAndWithoutAnEnd) {
  std::istringstream input("a\n\nlast");
  std::vector<std::string> lines;
  for (std::string line; read_line(input, "x", 10, line);) lines.push_back(line);
  EXPECT_THAT(lines, testing::ElementsAre("a", "", "last"));
}

TEST(ReadLineTest, KeepsOneByteMoreThanTheLimitOfALongLine) {
  std::istringstream input(std::string(100, 'x') + "\ny\n");
  std::string line;
  ASSERT_TRUE(read_line(input, "x", 10, line));
  EXPECT_EQ(line.size(), 11U);
  ASSERT_TRUE(read_line(input, "x", 10, line));
  EXPECT_EQ(line, "y");
}

TEST(ReadLineTest, RefusesAFolderByItsName) {
  std::ifstream input("/");
  std::string line;
  try {
    read_line(input, "the/folder", 10, line);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("the/folder: cannot be read"));
  }
}

}  // namespace
}  // namespace memfathom
