#include "db/migration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "db/store.h"
#include "tests/db/examples.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path dump_of(int schema) { return test_data() / "db" / fmt::format("v{}.sql", schema); }

class PastSchemaTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(dump_of(GetParam())))
        << "every schema has a dump, the latest too: tests/data/db/README.md";
    SQLite::Database(path_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec(text_of(dump_of(GetParam())));
  }
  // What is in every dump.
  static void expect_example(const Store& store) {
    EXPECT_THAT(store.check(), IsEmpty());
    EXPECT_EQ(store.info().fingerprint, "0c6f057fdc523f9fd2e7ad1788a2dc27")
        << "the same rows with the same uids";
    const std::vector<StoredSample> samples = store.samples({});
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(samples[0].sample.stages.size(), 8U);
    EXPECT_EQ(samples[2].sample.status, SampleStatus::kCrashed);
    EXPECT_EQ(store.calibration_for(examples::a100())->id, "2419983534f5e8aea12b2d9654d1e4a2");
    EXPECT_EQ(store.annotations(store.find_baseline("nightly")->id).size(), 1U);
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "old.db";
};

TEST_P(PastSchemaTest, IsReadWithoutChangingTheFile) {
  const std::string before = text_of(path_);
  expect_example(Store::open(path_, Store::Mode::kReadOnly));
  EXPECT_EQ(text_of(path_), before);
}

TEST_P(PastSchemaTest, IsUpgradedInPlaceWithAllItsRows) {
  {
    const Store store = Store::open(path_, Store::Mode::kReadWrite);
    EXPECT_EQ(store.info().schema, latest_schema());
    expect_example(store);
  }
  expect_example(Store::open(path_, Store::Mode::kReadOnly));
}

INSTANTIATE_TEST_SUITE_P(AllSchemas, PastSchemaTest, ::testing::Range(1, latest_schema() + 1));

// Migrations of a test schema.
class MigrationTest : public ::testing::Test {
 protected:
  static constexpr std::array<EmbeddedFile, 2> kFiles{{
      {"0001_first.sql", "CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1);"},
      {"0002_second.sql",
       "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT ''; UPDATE t SET b = 'x';"},
  }};
  SQLite::Database database_{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
};

TEST_F(MigrationTest, AppliesMissingMigrationsOnce) {
  migrate(database_, std::span(kFiles).first(1));
  EXPECT_EQ(schema_of(database_), 1);
  migrate(database_, kFiles);
  EXPECT_EQ(schema_of(database_), 2);
  migrate(database_, kFiles);
  EXPECT_EQ(database_.execAndGet("SELECT group_concat(a || b) FROM t").getString(), "1x");
}

TEST_F(MigrationTest, IsAtomic) {
  const std::array<EmbeddedFile, 3> broken{kFiles[0], kFiles[1],
                                           EmbeddedFile{"0003_broken.sql", "DROP TABLE missing;"}};
  EXPECT_THROW(migrate(database_, broken), SQLite::Exception);
  EXPECT_EQ(schema_of(database_), 0);
  EXPECT_FALSE(database_.tableExists("t"));
}

TEST_F(MigrationTest, IncludesEveryFileOfTheFolderInOrder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(project_directory() / "db/migrations")) {
    files[entry.path().filename().string()] = text_of(entry.path());
  }
  ASSERT_EQ(migration_files().size(), files.size()) << "db/CMakeLists.txt lists them";
  std::size_t i = 0;
  for (const auto& [name, text] : files) {
    EXPECT_EQ(migration_files()[i].name, name);
    EXPECT_EQ(migration_files()[i].text, text);
    EXPECT_EQ(name.substr(0, 5), fmt::format("{:04}_", ++i));
  }
}

}  // namespace
}  // namespace memfathom
