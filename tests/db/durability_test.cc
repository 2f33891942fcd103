// Killed writers and concurrent writers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <set>

#include "db/store.h"
#include "tests/db/child_process.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

constexpr std::size_t kIdLength = 32;

// Stores samples until killed; writes each id to the pipe once its sample is stored.
int store_until_killed(const fs::path& path, int progress) {
  Store store = Store::open(path, Store::Mode::kReadWrite);
  const std::string run = store.begin_run(examples::run_of(examples::a100()));
  for (int i = 0;; ++i) {
    const std::string id = store.insert_sample(run, examples::sample(i));
    if (write(progress, id.data(), kIdLength) != static_cast<ssize_t>(kIdLength)) return 1;
  }
}

std::string read_id(int progress) {
  std::string id(kIdLength, '\0');
  std::size_t filled = 0;
  while (filled < kIdLength) {
    const ssize_t got = read(progress, id.data() + filled, kIdLength - filled);
    if (got <= 0) return {};
    filled += static_cast<std::size_t>(got);
  }
  return id;
}

void spin(unsigned turns) {
  std::atomic<unsigned> left = turns;
  while (left > 0) --left;
}

// Kills a writer some time after its `lines`-th progress line; returns the ids of all lines it got
// to write.
std::set<std::string> kill_a_writer(const fs::path& path, int lines, unsigned turns) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t writer = start_child([&] {
    close(ends[0]);
    return store_until_killed(path, ends[1]);
  });
  close(ends[1]);
  std::set<std::string> ids;
  for (int i = 0; i < lines; ++i) ids.insert(read_id(ends[0]));
  spin(turns);
  kill(writer, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(writer))) << "the writer ended by itself";
  for (std::string id = read_id(ends[0]); !id.empty(); id = read_id(ends[0])) ids.insert(id);
  close(ends[0]);
  return ids;
}

bool left_half_written(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path.string() + "-journal", error);
  return !error && size > 0;
}

TEST(DurabilityTest, LosesNoCommittedSampleInTwoHundredRandomKills) {
  constexpr int kDatabases = 20;
  constexpr int kKillsEach = 10;
  std::mt19937 engine(20261116);
  const auto random = [&engine] { return static_cast<unsigned>(engine()); };
  std::size_t reported = 0;
  int half_written = 0;
  for (int d = 0; d < kDatabases; ++d) {
    const TemporaryDirectory directory;
    const fs::path path = directory / "memfathom.db";
    std::set<std::string> committed;
    for (int k = 0; k < kKillsEach; ++k) {
      // Often before the first line: while the file is being made, or the journal of the last
      // victim rolled back.
      const int lines = static_cast<int>(random() % 4);
      const unsigned turns = random() % (1U << random() % 23);  // up to some 20 ms, mostly far less
      committed.merge(kill_a_writer(path, lines, turns));
      half_written += left_half_written(path) ? 1 : 0;
    }
    reported += committed.size();
    const std::optional<Store> store = Store::open_if_exists(path);
    ASSERT_TRUE(store || committed.empty());
    if (!store) continue;
    std::set<std::string> found;
    for (const StoredSample& sample : store->samples({})) found.insert(sample.id);
    EXPECT_TRUE(std::includes(found.begin(), found.end(), committed.begin(), committed.end()));
    EXPECT_LE(found.size(), committed.size() + kKillsEach)
        << "at most one more per kill: stored, not yet reported";
    EXPECT_THAT(store->check(), IsEmpty());
  }
  EXPECT_GT(reported, 100U);
  EXPECT_GT(half_written, 10) << "the kills must hit transactions, or the test shows nothing";
  RecordProperty("kills_inside_a_transaction", half_written);
}

TEST(DurabilityTest, ReadsADatabaseAfterAKilledTransaction) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "memfathom.db";
  {
    Store store = Store::open(path, Store::Mode::kReadWrite);
    store.insert_sample(store.begin_run(examples::run_of(examples::a100())), examples::sample(1));
  }
  const int status = wait_for(start_child([&] {
    Store store = Store::open(path, Store::Mode::kReadWrite);
    const std::string run = store.runs().at(0).id;
    Store::Batch batch(store);
    // More than the cache holds: pages of the transaction reach the file, and its journal the disk.
    Sample large = examples::sample(2);
    large.status_note = std::string(1'000'000, 'x');
    for (int i = 0; i < 400; ++i) store.insert_sample(run, large);
    kill(getpid(), SIGKILL);
    return 0;
  }));
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_GT(fs::file_size(path.string() + "-journal"), 0U)
      << "the test must leave a journal behind";
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  EXPECT_EQ(store.samples({}).size(), 1U);
  EXPECT_THAT(store.check(), IsEmpty());
}

TEST(DurabilityTest, AllowsTwoConcurrentWriters) {
  constexpr int kWriters = 2;
  constexpr int kSamplesEach = 40;
  const TemporaryDirectory directory;
  const fs::path path = directory / "memfathom.db";  // which both make
  std::vector<pid_t> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.push_back(start_child([&] {
      Store store = Store::open(path, Store::Mode::kReadWrite);
      const std::string run = store.begin_run(examples::run_of(examples::a100()));
      for (int i = 0; i < kSamplesEach; ++i) store.insert_sample(run, examples::sample(i));
      return 0;
    }));
  }
  for (const pid_t writer : writers) {
    const int status = wait_for(writer);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  EXPECT_EQ(store.runs().size(), 2U);
  EXPECT_EQ(store.samples({}).size(), static_cast<std::size_t>(kWriters * kSamplesEach));
  EXPECT_THAT(store.check(), IsEmpty());
}

}  // namespace
}  // namespace memfathom
