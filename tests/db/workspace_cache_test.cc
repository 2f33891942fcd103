#include "db/workspace_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

#include "tests/db/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

std::string key(int i) {
  return workspace_cache_key("conv forward fp32 x[" + std::to_string(i) + "]", "sm_80", "9.1.0");
}

TEST(WorkspaceCacheTest, RemembersFromOneProcessToTheNext) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "new" / "workspaces.db";
  {
    WorkspaceCache cache(path);
    EXPECT_EQ(cache.trouble(), "");
    EXPECT_FALSE(cache.find(key(1)));
    cache.insert(key(1), Bytes{42});
    cache.insert(key(2), Bytes{0});
    EXPECT_EQ(cache.find(key(1)), Bytes{42});
  }
  WorkspaceCache cache(path);
  EXPECT_EQ(cache.find(key(1)), Bytes{42});
  EXPECT_EQ(cache.find(key(2)), Bytes{0}) << "no workspace is an answer too";
  EXPECT_FALSE(cache.find(key(3)));
}

TEST(WorkspaceCacheTest, TellsArchitecturesAndVersionsApart) {
  EXPECT_NE(workspace_cache_key("q", "sm_80", "9.1"), workspace_cache_key("q", "sm_90", "9.1"));
  EXPECT_NE(workspace_cache_key("q", "sm_80", "9.1"), workspace_cache_key("q", "sm_80", "9.2"));
}

TEST(WorkspaceCacheTest, KeepsMoreThanItHoldsBack) {
  const TemporaryDirectory directory;
  constexpr int kMany = 10'000;
  {
    WorkspaceCache cache(directory / "workspaces.db");
    for (int i = 0; i < kMany; ++i) cache.insert(key(i), Bytes{i});
  }
  WorkspaceCache cache(directory / "workspaces.db");
  for (int i = 0; i < kMany; i += 997) EXPECT_EQ(cache.find(key(i)), Bytes{i});
}

TEST(WorkspaceCacheTest, WorksWithoutAFile) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "novel.txt";
  std::ofstream(path)
      << "It was a dark and stormy night; the rain fell in torrents, except at intervals.";
  {
    WorkspaceCache cache(path);
    EXPECT_THAT(cache.trouble(), HasSubstr("novel.txt is not used"));
    cache.insert(key(1), Bytes{42});
    EXPECT_EQ(cache.find(key(1)), Bytes{42});
  }
  std::string word;
  std::ifstream(path) >> word;
  EXPECT_EQ(word, "It");
}

TEST(WorkspaceCacheTest, LeavesOtherDatabasesAlone) {
  const TemporaryDirectory directory;
  { WorkspaceCache made(directory / "workspaces.db"); }
  const auto size = std::filesystem::file_size(directory / "workspaces.db");
  // The application_id of a SQLite file lies at offset 68.
  std::fstream file(directory / "workspaces.db", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(68);
  file.write("abcd", 4);
  file.close();
  {
    WorkspaceCache cache(directory / "workspaces.db");
    EXPECT_THAT(cache.trouble(), HasSubstr("not a workspace cache"));
    cache.insert(key(1), Bytes{1});
  }
  EXPECT_EQ(std::filesystem::file_size(directory / "workspaces.db"), size);
}

TEST(WorkspaceCacheTest, MayBeUsedFromSeveralThreadsAndBySeveralCaches) {
  const TemporaryDirectory directory;
  {
    WorkspaceCache cache(directory / "workspaces.db");
    WorkspaceCache other(directory / "workspaces.db");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t; i < 400; i += 4) {
          cache.insert(key(i), Bytes{i});
          EXPECT_EQ(cache.find(key(i)), Bytes{i});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    other.insert(key(1000), Bytes{1000});
  }
  WorkspaceCache cache(directory / "workspaces.db");
  EXPECT_EQ(cache.find(key(399)), Bytes{399});
  EXPECT_EQ(cache.find(key(1000)), Bytes{1000});
}

}  // namespace
}  // namespace memfathom
