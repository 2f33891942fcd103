#include "kernels/workspaces/workspace_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

std::string text_of(int i) {
  return "conv forward fp32 nchw x[" + std::to_string(i) +
         ",64,128,128] w[128,64,3,3] s[1,1] p[1,1] d[1,1] g1";
}

std::vector<CachedWorkspace> answers(int from, int to) {
  std::vector<CachedWorkspace> all;
  for (int i = from; i < to; ++i) all.push_back({text_of(i), std::int64_t{1000} * i});
  return all;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void replace(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

int known(const WorkspaceStore& store, int from, int to) {
  int found = 0;
  for (int i = from; i < to; ++i) {
    const std::optional<std::int64_t> bytes = store.find(text_of(i));
    if (bytes) {
      EXPECT_EQ(*bytes, std::int64_t{1000} * i);
    }
    found += bytes.has_value();
  }
  return found;
}

TEST(WorkspaceStoreTest, AnswersOutliveTheStore) {
  const TemporaryDirectory directory;
  const std::filesystem::path stem = directory.path() / "deeper" / "cudnn";
  {
    WorkspaceStore store(stem);
    EXPECT_EQ(store.find(text_of(1)), std::nullopt);
    store.append(answers(1, 4));
    const CachedWorkspace refused{"conv refused", CachedWorkspace::kRefused};
    store.append(std::span(&refused, 1));
    EXPECT_EQ(store.find(text_of(2)), 2000);
  }
  const WorkspaceStore again(stem);
  EXPECT_EQ(known(again, 1, 4), 3);
  EXPECT_EQ(again.find("conv refused"), CachedWorkspace::kRefused);
  EXPECT_EQ(again.find(text_of(4)), std::nullopt);
  EXPECT_EQ(again.find(""), std::nullopt);
}

TEST(WorkspaceStoreTest, MergesALongLogIntoASortedFileAndFindsEveryAnswer) {
  const TemporaryDirectory directory;
  const std::filesystem::path stem = directory.path() / "cudnn";
  {
    WorkspaceStore store(stem);
    for (int i = 0; i < 12000; i += 1000) store.append(answers(i, i + 1000));
    EXPECT_EQ(known(store, 0, 12000), 12000);
  }
  EXPECT_GT(std::filesystem::file_size(stem.string() + ".sorted"), 500'000U);
  EXPECT_LT(std::filesystem::file_size(stem.string() + ".log"), 300'000U);
  const WorkspaceStore again(stem);
  EXPECT_EQ(known(again, 0, 12000), 12000);
  EXPECT_EQ(known(again, 12000, 12100), 0);
}

TEST(WorkspaceStoreTest, IgnoresOnlyDamagedLines) {
  const TemporaryDirectory directory;
  const std::filesystem::path stem = directory.path() / "cudnn";
  const std::filesystem::path log = stem.string() + ".log";
  WorkspaceStore(stem).append(answers(10, 20));
  std::string text = contents(log);
  text[text.find("\t12000\t") + 1] = '9';  // the answer of query 12 becomes 92000
  text.resize(text.size() - 5);            // the line of query 19 loses its end
  replace(log, text);
  {
    WorkspaceStore store(stem);
    EXPECT_EQ(known(store, 10, 20), 8);
    EXPECT_EQ(store.find(text_of(12)), std::nullopt);
    EXPECT_EQ(store.find(text_of(19)), std::nullopt);
    store.append(answers(30, 31));  // after half a line
  }
  EXPECT_EQ(known(WorkspaceStore(stem), 30, 31), 1);
}

TEST(WorkspaceStoreTest, ReplacesACorruptSortedFileAtTheNextMerge) {
  const TemporaryDirectory directory;
  const std::filesystem::path stem = directory.path() / "cudnn";
  const std::filesystem::path sorted = stem.string() + ".sorted";
  for (const std::string& rubbish : {std::string(100'000, 'x'), std::string(5000, '\n'),
                                     std::string(5000, '\t'), std::string("\0\1\2", 3)}) {
    replace(sorted, rubbish);
    const WorkspaceStore store(stem);
    EXPECT_EQ(known(store, 0, 50), 0);
    EXPECT_EQ(store.find(""), std::nullopt);
  }
  WorkspaceStore(stem).append(answers(0, 4000));
  EXPECT_EQ(known(WorkspaceStore(stem), 0, 4000), 4000);
}

TEST(WorkspaceStoreTest, LosesNoAnswerWhenSeveralProcessesAppendAndMerge) {
  const TemporaryDirectory directory;
  const std::filesystem::path stem = directory.path() / "cudnn";
  constexpr int kWriters = 4;
  constexpr int kEach = 2000;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      WorkspaceStore store(stem);
      for (int i = 0; i < kEach; i += 50)
        store.append(answers(writer * kEach + i, writer * kEach + i + 50));
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(known(WorkspaceStore(stem), 0, kWriters * kEach), kWriters * kEach);
}

TEST(WorkspaceStoreTest, KeepsAnswersInMemoryIfTheFileIsNotWritable) {
  for (const char* stem : {"", "/proc/nowhere/cudnn"}) {
    WorkspaceStore store(stem);
    store.append(answers(0, 3));
    EXPECT_EQ(known(store, 0, 3), 3);
  }
}

}  // namespace
}  // namespace memfathom
