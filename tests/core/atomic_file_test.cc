#include "core/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string content(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, ReplacesTheContentAndLeavesNoTemporaryFile) {
  write_file_atomically(folder_ / "a", "first");
  write_file_atomically(folder_ / "a", "second");
  EXPECT_EQ(content("a"), "second");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFileTest, KeepsSymbolicLinks) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_symlink(folder_ / "target", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content("target"), "new");
}

TEST_F(AtomicFileTest, AnExistingFileKeepsItsMode) {
  std::ofstream(folder_ / "a") << "old";
  for (const auto mode : {fs::perms{0600}, fs::perms{0640}, fs::perms{0755}}) {
    fs::permissions(folder_ / "a", mode);
    write_file_atomically(folder_ / "a", "new");
    EXPECT_EQ(fs::status(folder_ / "a").permissions(), mode);
  }
}

TEST_F(AtomicFileTest, ALinkUnderAGuessedTemporaryNameIsNotFollowed) {
  std::ofstream(folder_ / "victim") << "precious";
  fs::create_symlink(folder_ / "victim", folder_ / ("a." + std::to_string(::getpid()) + ".tmp"));
  write_file_atomically(folder_ / "a", "new");
  EXPECT_EQ(content("victim"), "precious");
  EXPECT_EQ(content("a"), "new");
}

TEST_F(AtomicFileTest, ANameOfTheGreatestLengthIsWritten) {
  const std::string name(255, 'n');
  write_file_atomically(folder_ / name, "x");
  EXPECT_EQ(content(name), "x");
}

TEST_F(AtomicFileTest, RefusesADirectoryByName) {
  try {
    write_file_atomically(folder_, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), testing::HasSubstr(folder_.string()));
  }
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace memfathom
