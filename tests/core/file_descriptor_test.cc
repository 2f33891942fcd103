#include "core/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace memfathom {
namespace {

TEST(DescriptorTest, ClosesItsDescriptorOnce) {
  const int number = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  {
    FileDescriptor file(number);
    EXPECT_TRUE(file);
    file.reset();
    EXPECT_FALSE(file);
    EXPECT_EQ(file.get(), -1);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(DescriptorTest, ReportsWhyAWriteFailed) {
  const FileDescriptor reading(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(reading, "text"), EBADF);
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(full, "text"), ENOSPC);
}

TEST(DescriptorTest, WritesAllOfAText) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor out(ends[0]);
  const FileDescriptor in(ends[1]);
  EXPECT_EQ(write_all(in, "a whole text"), 0);
  std::string read(64, ' ');
  read.resize(static_cast<std::size_t>(::read(out.get(), read.data(), read.size())));
  EXPECT_EQ(read, "a whole text");
}

}  // namespace
}  // namespace memfathom
