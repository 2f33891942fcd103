// Loss of power at every moment of every command that writes: what was acknowledged is there, what
// was not is there whole or not at all, and the database is sound.
//
// MEMFATHOM_POWER_LOSS_STEP=1 takes every moment; without it the test takes every fourth. With
// MEMFATHOM_POWER_LOSS_LOG the counts are appended to that file (scripts/reliability).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "core/atomic_file.h"
#include "core/error.h"
#include "db/calibration_file.h"
#include "db/migration.h"
#include "db/store.h"
#include "tests/db/examples.h"
#include "tests/db/power_loss/recorder.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom::power_loss {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDatabase = "memfathom.db";

// Everything that a store has, by id.
std::set<std::string> ids_of(const Store& store) {
  std::set<std::string> ids;
  for (const Run& run : store.runs()) ids.insert(run.id + run.finished.value_or(""));
  for (const StoredSample& s : store.samples({.include_virtual = true, .include_removed = true}))
    ids.insert(s.id);
  for (const StoredObservation& o : store.stored_observations()) ids.insert(o.id);
  for (const Calibration& c : store.calibrations()) ids.insert(c.id);
  for (const Removal& r : store.removals()) ids.insert(r.id);
  return ids;
}

std::size_t step() {
  const char* const given = std::getenv("MEMFATHOM_POWER_LOSS_STEP");
  return given == nullptr ? 4 : static_cast<std::size_t>(std::max(1, std::atoi(given)));
}

void write_log(const std::string& scenario, std::size_t states) {
  const char* const file = std::getenv("MEMFATHOM_POWER_LOSS_LOG");
  if (file != nullptr) std::ofstream(file, std::ios::app) << scenario << ' ' << states << '\n';
}

class PowerLossTest : public ::testing::Test {
 protected:
  fs::path database() const { return directory_ / kDatabase; }
  Store open() const { return Store::open(database(), Store::Mode::kReadWrite); }

  // Notes what is stored now, of which the caller was told.
  void acknowledge(const Store& store) {
    acknowledged_.push_back(ids_of(store));
    recording_->acknowledge();
  }
  void start() { recording_ = std::make_unique<Recording>(directory_.path()); }

  // Tries `check` on the folder after a loss of power at every moment, in four ways.
  void for_each_state(const std::function<void(const fs::path& folder, int acknowledged)>& check) {
    recording_->stop();
    std::mt19937_64 random(20261118);
    std::size_t states = 0;
    const std::size_t count = recording_->events().size();
    ASSERT_GT(count, 4U) << "nothing was recorded";
    for (std::size_t end = 0; end <= count;
         end += end == count ? 1 : std::min(step(), count - end)) {
      for (const Loss loss : {Loss::kAll, Loss::kNone, Loss::kSome, Loss::kTorn}) {
        const TemporaryDirectory copy;
        for (const auto& [name, content] : recording_->after_loss(end, loss, random))
          std::ofstream(copy.path() / name, std::ios::binary) << content;
        SCOPED_TRACE(testing::Message() << "before event " << end << " of " << count << ", loss "
                                        << static_cast<int>(loss));
        check(copy.path(), recording_->acknowledged(end));
        ++states;
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
    write_log(testing::UnitTest::GetInstance()->current_test_info()->name(), states);
  }

  // The database is sound and holds what was acknowledged; of the rest the next step or nothing.
  void expect_acknowledged(const fs::path& folder, int acknowledged) const {
    const auto last = static_cast<std::size_t>(acknowledged);
    ASSERT_LT(last, acknowledged_.size() + 1);
    const std::set<std::string> before = last == 0 ? at_start_ : acknowledged_[last - 1];
    const bool is_there = fs::exists(folder / kDatabase);
    if (!is_there) {
      EXPECT_TRUE(before.empty()) << "the database is gone";
      return;
    }
    try {
      const Store store = Store::open(folder / kDatabase, Store::Mode::kReadWrite);
      EXPECT_THAT(store.check(), testing::IsEmpty());
      const std::set<std::string> found = ids_of(store);
      const bool is_next = last < acknowledged_.size() && found == acknowledged_[last];
      EXPECT_TRUE(found == before || is_next)
          << found.size() << " rows; " << before.size() << " were acknowledged";
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Recording> recording_;
  std::set<std::string> at_start_;
  std::vector<std::set<std::string>> acknowledged_;
};

TEST_F(PowerLossTest, CalibratingANewDatabase) {
  start();
  {
    Store store = open();
    acknowledge(store);
    const std::string run = store.begin_run(examples::run_of(examples::a100()));
    acknowledge(store);
    for (int i = 1; i <= 4; ++i) {
      store.insert_sample(run, examples::sample(i));
      acknowledge(store);
    }
    store.save_calibration(examples::calibration(examples::a100(), "2026-11-18T12:00:00Z"));
    acknowledge(store);
    store.finish_run(run, "2026-11-18T12:01:00Z");
    acknowledge(store);
  }
  for_each_state([&](const fs::path& folder, int number) { expect_acknowledged(folder, number); });
}

TEST_F(PowerLossTest, ObservingAndRemoving) {
  {
    Store store = open();
    store.insert_observation(examples::observation(1));
    at_start_ = ids_of(store);
  }
  start();
  {
    Store store = open();
    for (int at : {10, 20, 30}) {
      Store::Batch batch(store);
      for (int i = at; i < at + 5; ++i) store.insert_observation(examples::observation(i));
      batch.commit();
      acknowledge(store);
    }
    for (const bool removed : {true, false, true}) {
      store.set_removed(store.stored_observations().front().id, removed, "2026-11-18T12:00:00Z",
                        "");
      acknowledge(store);
    }
  }
  for_each_state([&](const fs::path& folder, int number) { expect_acknowledged(folder, number); });
}

TEST_F(PowerLossTest, MergingTwoDatabases) {
  const TemporaryDirectory elsewhere;
  for (const char* name : {"a.db", "b.db"}) {
    Store other = Store::open(elsewhere / name, Store::Mode::kReadWrite);
    const std::string run = other.begin_run(examples::run_of(examples::a30()));
    for (int i = 0; i < 20; ++i) other.insert_sample(run, examples::sample(i));
    other.save_calibration(
        examples::calibration(examples::a30(), std::string("2026-11-18T12:00:0") + name[0] + "Z"));
  }
  {
    Store store = open();
    store.insert_observation(examples::observation(1));
    at_start_ = ids_of(store);
  }
  start();
  {
    Store store = open();
    for (const char* name : {"a.db", "b.db"}) {
      store.merge(Store::open(elsewhere / name, Store::Mode::kReadOnly));
      acknowledge(store);
    }
  }
  for_each_state([&](const fs::path& folder, int number) { expect_acknowledged(folder, number); });
}

TEST_F(PowerLossTest, ImportingCalibrations) {
  { at_start_ = ids_of(open()); }
  start();
  {
    Store store = open();
    for (int i = 0; i < 3; ++i) {
      Store::Batch batch(store);
      for (int k = 0; k < 2; ++k) {
        Calibration c =
            examples::calibration(examples::a100(), "2026-11-1" + std::to_string(i) + "T12:00:0" +
                                                        std::to_string(k) + "Z");
        c.id = content_id(c);
        store.import_calibration(c);
      }
      batch.commit();
      acknowledge(store);
    }
  }
  for_each_state([&](const fs::path& folder, int number) { expect_acknowledged(folder, number); });
}

TEST_F(PowerLossTest, BackingUp) {
  {
    Store store = open();
    const std::string run = store.begin_run(examples::run_of(examples::a100()));
    for (int i = 0; i < 20; ++i) store.insert_sample(run, examples::sample(i));
    at_start_ = ids_of(store);
  }
  start();
  {
    const Store store = open();
    for (const char* name : {"backup-1.db", "backup-2.db"}) {
      store.backup(directory_ / name);
      acknowledge(store);
    }
  }
  for_each_state([&](const fs::path& folder, int number) {
    expect_acknowledged(folder, number);
    for (int i = 1; i <= 2; ++i) {
      const fs::path copy = folder / ("backup-" + std::to_string(i) + ".db");
      if (!fs::exists(copy)) {
        EXPECT_LT(number, i) << "an acknowledged backup is gone";
        continue;
      }
      const Store store = Store::open(copy, Store::Mode::kReadOnly);
      EXPECT_THAT(store.check(), testing::IsEmpty());
      EXPECT_EQ(ids_of(store), at_start_);
    }
  });
}

TEST_F(PowerLossTest, UpgradingTheFirstSchema) {
  std::ifstream dump(test_data() / "db" / "v1.sql");
  SQLite::Database(database().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec(std::string(std::istreambuf_iterator<char>(dump), {}));
  at_start_ = ids_of(Store::open(database(), Store::Mode::kReadOnly));
  ASSERT_GT(at_start_.size(), 3U);
  start();
  {
    const Store store = open();
    EXPECT_EQ(store.info().schema, latest_schema());
    acknowledge(store);
  }
  for_each_state([&](const fs::path& folder, int number) { expect_acknowledged(folder, number); });
}

TEST_F(PowerLossTest, ReplacingAFile) {
  std::ofstream(directory_ / "calibration.json") << std::string(20'000, 'o');
  start();
  for (int i = 0; i < 3; ++i) {
    write_file_atomically((directory_ / "calibration.json").string(),
                          std::string(20'000, static_cast<char>('1' + i)));
    recording_->acknowledge();
  }
  for_each_state([&](const fs::path& folder, int number) {
    std::ifstream file(folder / "calibration.json");
    const std::string found(std::istreambuf_iterator<char>(file), {});
    const auto of = [](int i) {
      return std::string(20'000, i == 0 ? 'o' : static_cast<char>('0' + i));
    };
    EXPECT_TRUE(found == of(number) || found == of(number + 1))
        << found.size() << " bytes, of which the first is " << found.substr(0, 1);
  });
}

// Without syncs the same recorder must find losses, or it shows nothing.
TEST_F(PowerLossTest, IsNoticedWhereSyncsAreMissing) {
  { at_start_ = ids_of(open()); }
  start();
  {
    SQLite::Database careless(database().string(), SQLite::OPEN_READWRITE);
    careless.exec(
        "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"
        "CREATE TABLE t (x); INSERT INTO t VALUES (hex(randomblob(20000)))");
    recording_->acknowledge();
  }
  recording_->stop();
  std::mt19937_64 random(1);
  const std::size_t all = recording_->events().size();
  Folder lost = recording_->after_loss(all, Loss::kAll, random);
  Folder kept = recording_->after_loss(all, Loss::kNone, random);
  EXPECT_NE(lost.at(kDatabase), kept.at(kDatabase)) << "nothing was synced, so it may be lost";
}

}  // namespace
}  // namespace memfathom::power_loss
