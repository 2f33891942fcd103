#include "core/read_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <streambuf>

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

// As many zeros as are asked for, as /dev/zero has them.
class Zeros : public std::streambuf {
 protected:
  int_type underflow() override {
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return 0;
  }

 private:
  std::array<char, 4096> block_{};
};

TEST(ReadLineTest, RefusesALineWithoutAnEnd) {
  Zeros zeros;
  std::istream input(&zeros);
  std::string line;
  try {
    read_line(input, "/dev/zero", 10, line);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("/dev/zero: a line has no end after 256 MiB"));
  }
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
