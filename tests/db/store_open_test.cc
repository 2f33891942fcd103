// Errors of the store for unusable files: one sentence with a remedy, and an unchanged file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "core/error.h"
#include "db/connection.h"
#include "db/migration.h"
#include "db/rows.h"
#include "db/store.h"
#include "tests/db/child_process.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Store::Mode kBothModes[] = {Store::Mode::kReadWrite, Store::Mode::kReadOnly};

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

void execute(const fs::path& path, const std::string& sql) {
  SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(sql);
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// A database with one sample, closed.
void make_database(const fs::path& path) {
  Store store = Store::open(path, Store::Mode::kReadWrite);
  store.insert_sample(store.begin_run(examples::run_of(examples::a100())), examples::sample(1));
}

void expect_error(ErrorKind kind, const ::testing::Matcher<const char*>& sentence,
                  const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), sentence);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one sentence";
  }
}

TEST(StoreOpenTest, CreatesTheFileAndItsDirectories) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "deep" / "er" / "memfathom.db";
  make_database(path);
  EXPECT_EQ(Store::open(path, Store::Mode::kReadOnly).samples({}).size(), 1U);
}

TEST(StoreOpenTest, ReportsAMissingFile) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "none.db";
  expect_error(ErrorKind::kInput, AllOf(HasSubstr("none.db does not exist"), HasSubstr("--db")),
               [&] { Store::open(path, Store::Mode::kReadOnly); });
  EXPECT_FALSE(Store::open_if_exists(path));
  EXPECT_FALSE(fs::exists(path));
}

TEST(StoreOpenTest, AcceptsAnEmptyFileAsAnEmptyDatabase) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "empty.db";
  write(path, "");
  EXPECT_FALSE(Store::open_if_exists(path));
  expect_error(ErrorKind::kInput, HasSubstr("is empty"),
               [&] { Store::open(path, Store::Mode::kReadOnly); });
  make_database(path);
  EXPECT_TRUE(Store::open_if_exists(path));
}

TEST(StoreOpenTest, DoesNotChangeAFileThatIsNotADatabase) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "thesis.txt";
  const std::string content = "Chapter 1. " + std::string(5000, 'x');
  write(path, content);
  for (const Store::Mode mode : kBothModes) {
    expect_error(ErrorKind::kInput,
                 AllOf(HasSubstr("thesis.txt is not a SQLite database"), HasSubstr("--db")),
                 [&] { Store::open(path, mode); });
  }
  EXPECT_EQ(content_of(path), content);
  EXPECT_THAT(names_in(directory.path()), ::testing::ElementsAre("thesis.txt"));
}

TEST(StoreOpenTest, DoesNotChangeTheDatabaseOfAnotherProgram) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "browser.db";
  // In WAL mode, where merely opening it through SQLite would make two more files.
  execute(path,
          "PRAGMA journal_mode = WAL; CREATE TABLE history (url TEXT); INSERT INTO history VALUES "
          "('x')");
  const std::string content = content_of(path);
  for (const Store::Mode mode : kBothModes) {
    expect_error(
        ErrorKind::kInput,
        HasSubstr("browser.db is a SQLite database of another program (application_id 0x0"),
        [&] { Store::open(path, mode); });
  }
  EXPECT_EQ(content_of(path), content);
  EXPECT_THAT(names_in(directory.path()), ::testing::ElementsAre("browser.db"));
}

TEST(StoreOpenTest, RefusesADirectory) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::kInput, HasSubstr("is a directory"),
               [&] { Store::open(directory.path(), Store::Mode::kReadWrite); });
}

TEST(StoreOpenTest, DoesNotChangeADatabaseOfANewerVersion) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "newer.db";
  make_database(path);
  execute(path, fmt::format("PRAGMA user_version = {}", latest_schema() + 1));
  const std::string content = content_of(path);
  for (const Store::Mode mode : kBothModes) {
    expect_error(ErrorKind::kInput,
                 AllOf(HasSubstr(fmt::format("has schema {}", latest_schema() + 1)),
                       HasSubstr("newer memfathom")),
                 [&] { Store::open(path, mode); });
  }
  EXPECT_EQ(content_of(path), content);
}

TEST(StoreOpenTest, DetectsDamageAndDoesNotWrite) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "damaged.db";
  make_database(path);
  std::string content = content_of(path);
  ASSERT_GT(content.size(), 3U * 4096);
  std::fill(content.begin() + 4096, content.end(), '\xff');
  write(path, content);
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  EXPECT_FALSE(store.check().empty());
  expect_error(ErrorKind::kInput, AllOf(HasSubstr("damaged.db is damaged"), HasSubstr("backup")),
               [&] { store.samples({}); });
  EXPECT_EQ(content_of(path), content);
}

TEST(StoreOpenTest, DetectsATruncatedFile) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "short.db";
  make_database(path);
  fs::resize_file(path, std::uintmax_t{3} * 4096);
  expect_error(ErrorKind::kInput, HasSubstr("short.db is damaged"), [&] {
    Store store = Store::open(path, Store::Mode::kReadOnly);
    store.samples({});
  });
}

TEST(StoreOpenTest, DetectsAnEditedRow) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "edited.db";
  make_database(path);
  execute(path, "UPDATE samples SET device_peak_bytes = 1");
  EXPECT_THAT(Store::open(path, Store::Mode::kReadOnly).check(),
              ::testing::ElementsAre(
                  AllOf(HasSubstr("sample "), HasSubstr("was changed after it was stored"))));
}

TEST(StoreOpenTest, DetectsAnEditedSchema) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "edited.db";
  make_database(path);
  execute(path,
          "CREATE TRIGGER planted AFTER INSERT ON samples BEGIN DELETE FROM calibrations; END");
  EXPECT_THAT(Store::open(path, Store::Mode::kReadOnly).check(),
              ::testing::ElementsAre(HasSubstr("something else")));
}

TEST(StoreOpenTest, RunsNoTriggerOfTheFile) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "planted.db";
  make_database(path);
  execute(path, "CREATE TRIGGER planted AFTER INSERT ON runs BEGIN DELETE FROM samples; END");
  Store store = Store::open(path, Store::Mode::kReadWrite);
  const auto before = store.samples({.include_virtual = true}).size();
  ASSERT_GT(before, 0U);
  store.begin_run(examples::run_of(examples::a100()));
  EXPECT_EQ(store.samples({.include_virtual = true}).size(), before);
}

TEST(StoreOpenTest, ReadsNoViewOfTheFile) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "view.db";
  make_database(path);
  execute(path,
          "PRAGMA foreign_keys = OFF; DROP TABLE annotations; CREATE VIEW annotations AS SELECT "
          "1 AS uid, 2 AS subject, 3 AS created, 4 AS note");
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  expect_error(ErrorKind::kInput, HasSubstr("does not have the tables of memfathom"),
               [&] { store.annotations(""); });
}

TEST(StoreOpenTest, TrustsNoFunctionInTheSchemaOfTheFile) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "untrusted.db";
  make_database(path);
  for (const Access access : {Access::kReadWrite, Access::kReadOnly}) {
    Connection connection = Connection::open(path, access);
    EXPECT_EQ(connection.database().execAndGet("PRAGMA trusted_schema").getInt(), 0);
    // Our own CHECKs call it: the same answers as SQLite's.
    EXPECT_EQ(connection.database().execAndGet("SELECT json_valid('[1, {}]')").getInt(), 1);
    EXPECT_EQ(connection.database().execAndGet("SELECT json_valid('[1')").getInt(), 0);
    EXPECT_EQ(connection.database().execAndGet("SELECT json_valid(NULL) IS NULL").getInt(), 1);
  }
}

TEST(StoreOpenTest, RefusesTheTablesOfAnotherProgramUnderOurApplicationId) {
  const TemporaryDirectory directory;
  for (const char* version : {"0", "1"}) {
    const fs::path path = directory.path() / (std::string("foreign") + version + ".db");
    execute(path,
            "PRAGMA application_id = 1835426914; CREATE TABLE runs (a); PRAGMA user_version "
            "= " +
                std::string(version));
    for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
      expect_error(ErrorKind::kInput, HasSubstr("does not have the tables of memfathom"),
                   [&] { Store::open(path, mode).info(); });
    }
  }
}

TEST(StoreOpenTest, RefusesAPipeAtOnceAndAnEmptyName) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "pipe.db";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
    expect_error(ErrorKind::kInput, HasSubstr("not a regular file"),
                 [&] { Store::open(path, mode); });
    expect_error(ErrorKind::kInput, HasSubstr("is empty"), [&] { Store::open("", mode); });
  }
}

TEST(StoreOpenTest, CheckFindsAFileWhoseWriterWasKilledAtTheStart) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "killed.db";
  // As a killed backup leaves it: pages, and the journal of a transaction that began with none.
  make_database(directory / "whole.db");
  write(path, std::string(4096, '\0') + content_of(directory / "whole.db").substr(4096));
  std::string journal("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  journal += std::string("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\x10\0", 20);
  journal.resize(512, '\0');
  write(path.string() + "-journal", journal);
  EXPECT_THAT(Store::open(path, Store::Mode::kReadOnly).check(),
              ::testing::ElementsAre(HasSubstr("it is empty")));
}

TEST(StoreOpenTest, DetectsARowWithoutItsParent) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "orphan.db";
  make_database(path);
  execute(path, "PRAGMA foreign_keys = OFF; DELETE FROM runs");
  EXPECT_THAT(
      Store::open(path, Store::Mode::kReadOnly).check(),
      ::testing::Contains(HasSubstr("of samples refers to a row of runs that does not exist")));
}

// Opens a database in a child without root privileges.
enum Outcome { kAsExpected, kOpened, kOtherContent, kOtherError, kOtherSentence };

// `sentence` is part of the error that is expected, or null when the database should open.
int in_protected_directory(mode_t directory_mode, mode_t file_mode, Store::Mode mode,
                           const char* sentence) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "memfathom.db";
  make_database(path);
  fs::remove(path.string() + "-journal");
  chmod(path.c_str(), file_mode);
  chmod(directory.path().c_str(), directory_mode);
  const std::string content = content_of(path);
  const int outcome = exit_code_of_child([&] {
    become_unprivileged();
    try {
      const Store store = Store::open(path, mode);
      if (sentence != nullptr) return kOpened;
      return store.samples({}).size() == 1 ? kAsExpected : kOtherContent;
    } catch (const Error& error) {
      if (sentence == nullptr || error.kind() != ErrorKind::kEnvironment) return kOtherError;
      return std::string(error.what()).find(sentence) != std::string::npos ? kAsExpected
                                                                           : kOtherSentence;
    }
  });
  chmod(directory.path().c_str(), 0700);
  EXPECT_EQ(content_of(path), content);
  return outcome;
}

TEST(StoreOpenTest, ReadsFromAReadOnlyDirectory) {
  EXPECT_EQ(in_protected_directory(0555, 0444, Store::Mode::kReadOnly, nullptr), kAsExpected);
}

TEST(StoreOpenTest, RefusesToWriteInAReadOnlyDirectoryBeforeAnythingIsMeasured) {
  EXPECT_EQ(
      in_protected_directory(0555, 0666, Store::Mode::kReadWrite, "its directory is read-only"),
      kAsExpected);
}

TEST(StoreOpenTest, RefusesToWriteToAReadOnlyFile) {
  EXPECT_EQ(in_protected_directory(0777, 0444, Store::Mode::kReadWrite, "the file is read-only"),
            0);
}

TEST(StoreOpenTest, ReportsAnUnreadableFile) {
  EXPECT_EQ(in_protected_directory(0755, 0000, Store::Mode::kReadOnly, "cannot be read"),
            kAsExpected);
}

TEST(StoreOpenTest, OpensAReadOnlyMediumAsImmutable) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "50% done?#1.db";
  make_database(path);
  fs::remove(path.string() + "-journal");
  Connection connection = Connection::open(path, Access::kImmutable);
  EXPECT_EQ(rows::runs(connection).size(), 1U);
  EXPECT_EQ(names_in(directory.path()).size(), 1U);
}

TEST(StoreOpenTest, RefusesAHalfWrittenFileOnAReadOnlyMedium) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "memfathom.db";
  make_database(path);
  write(path.string() + "-journal", "what a killed writer left");
  expect_error(ErrorKind::kEnvironment, AllOf(HasSubstr("half written"), HasSubstr("copy it and")),
               [&] { Connection::open(path, Access::kImmutable); });
}

TEST(StoreOpenTest, KeepsCommittedRowsWhenTheDatabaseCannotGrow) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "full.db";
  make_database(path);
  {
    Connection connection = Connection::open(path, Access::kReadWrite);
    connection.database().exec("PRAGMA max_page_count = 60");
    expect_error(
        ErrorKind::kEnvironment,
        AllOf(HasSubstr("full.db: the disk is full while storing"), HasSubstr("--db")), [&] {
          guarded(path, "storing samples", [&] {
            WriteTransaction transaction(connection);
            rows::RunPosition position =
                rows::position_in(connection, rows::runs(connection).at(0).id);
            for (; position.next_number < 10'000; ++position.next_number) {
              rows::insert_sample(connection, position,
                                  examples::sample(static_cast<int>(position.next_number)));
            }
          });
        });
  }
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  EXPECT_EQ(store.samples({}).size(), 1U);
  EXPECT_THAT(store.check(), IsEmpty());
}

TEST(StoreOpenTest, KeepsStoredSamplesAfterAWriteError) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "limited.db";
  make_database(path);
  constexpr int kStored = 100;  // exit codes from here on count what was stored
  const int code = exit_code_of_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Store store = Store::open(path, Store::Mode::kReadWrite);
    const std::string run = store.runs().at(0).id;
    int stored = 0;
    try {
      Sample large = examples::sample(1);
      large.status_note = std::string(20'000, 'x');
      for (; stored < 100; ++stored) store.insert_sample(run, large);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kEnvironment ? kStored + stored : 1;
    }
    return 2;
  });
  ASSERT_GT(code, kStored);
  const Store store = Store::open(path, Store::Mode::kReadOnly);
  EXPECT_EQ(store.samples({}).size(), static_cast<std::size_t>(1 + code - kStored));
  EXPECT_THAT(store.check(), IsEmpty());
}

TEST(StoreOpenTest, ExplainsALockThatIsNeverReleased) {
  const Error error =
      translated(SQLite::Exception("database is locked", 5), "fleet.db", "storing a sample");
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("fleet.db: locked by another process"),
                                  HasSubstr("storing a sample")));
}

}  // namespace
}  // namespace memfathom
