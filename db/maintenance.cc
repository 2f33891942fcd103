// The functions of Store for the whole database: info, check, backup, merge.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/file_descriptor.h"
#include "db/calibration_file.h"
#include "db/migration.h"
#include "db/rows.h"
#include "db/store.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

// Name and text of every table and index.
std::vector<std::string> schema_texts(SQLite::Database& database) {
  std::vector<std::string> texts;
  SQLite::Statement query(
      database,
      "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1");
  while (query.executeStep()) texts.push_back(query.getColumn(0).getString());
  return texts;
}

void check_schema(Connection& connection, std::vector<std::string>& problems) {
  SQLite::Database expected(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  migrate(expected);
  if (schema_texts(connection.database()) != schema_texts(expected)) {
    problems.emplace_back(
        "its tables and indices are not those of memfathom's schema; something else has changed "
        "them");
  }
}

void check_pages_and_keys(Connection& connection, std::vector<std::string>& problems) {
  SQLite::Statement integrity(connection.database(), "PRAGMA integrity_check");
  while (integrity.executeStep()) {
    const std::string line = integrity.getColumn(0).getString();
    if (line != "ok") problems.push_back(line);
  }
  SQLite::Statement keys(connection.database(), "PRAGMA foreign_key_check");
  while (keys.executeStep()) {
    problems.push_back(fmt::format("row {} of {} refers to a row of {} that does not exist",
                                   keys.getColumn(1).getString(), keys.getColumn(0).getString(),
                                   keys.getColumn(2).getString()));
  }
}

void check_id(const char* what, const std::string& id, const std::string& expected,
              std::vector<std::string>& problems) {
  if (id != expected)
    problems.push_back(fmt::format("{} {} was changed after it was stored", what, id));
}

SampleFilter everything() {
  SampleFilter filter;
  filter.include_virtual = true;
  filter.include_removed = true;
  return filter;
}

void check_ids(const Store& store, std::vector<std::string>& problems) {
  for (const Run& run : store.runs()) check_id("run", run.id, rows::uid_of(run), problems);
  store.for_each_sample(everything(), [&](StoredSample&& stored) {
    check_id("sample", stored.id, rows::uid_of(stored.run, stored.number, stored.sample), problems);
  });
  for (const Calibration& c : store.calibrations())
    check_id("calibration", c.id, content_id(c), problems);
  for (const Baseline& baseline : store.baselines())
    check_id("baseline", baseline.id, rows::uid_of(baseline), problems);
  for (const Annotation& note : store.annotations(""))
    check_id("annotation", note.id, rows::uid_of(note), problems);
  for (const StoredObservation& stored : store.stored_observations())
    check_id("observation", stored.id, rows::uid_of(stored.observation), problems);
  for (const Removal& removal : store.removals())
    check_id("removal", removal.id, rows::uid_of(removal), problems);
}

std::string fingerprint(Connection& connection) {
  ContentHash hash("database");
  for (const char* sql :
       {"SELECT uid || coalesce(finished, '') FROM runs ORDER BY uid",
        "SELECT uid FROM samples ORDER BY uid", "SELECT uid FROM observations ORDER BY uid",
        "SELECT uid FROM calibrations ORDER BY uid", "SELECT uid FROM baselines ORDER BY uid",
        "SELECT uid FROM annotations ORDER BY uid"}) {
    Query query(connection, sql);
    std::string uid;
    while (query.step()) {
      query.read(uid);
      hash.add(uid);
    }
    hash.add("");  // the end of a table
  }
  // Not hashed if there are none: databases without removals have the fingerprint of schemas 1
  // and 2.
  Query removals(connection, "SELECT uid FROM removals ORDER BY uid");
  for (std::string uid; removals.step();) {
    removals.read(uid);
    hash.add(uid);
  }
  return hash.uid();
}

void require_sound(const Store& store, const fs::path& path) {
  const std::vector<std::string> problems = store.check();
  if (problems.empty()) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{} was not merged: {}", path.string(), problems.front()));
}

// Adds every row of `source` that `target` does not have.
MergeCounts copy_missing(const Store& source, Connection& target) {
  MergeCounts counts;
  const auto count = [](int& counter, const rows::Insertion& insertion) {
    counter += insertion.added ? 1 : 0;
  };
  for (const Run& run : source.runs()) count(counts.runs, rows::insert_run(target, run));
  rows::RunPosition position;
  source.for_each_sample(everything(), [&](StoredSample&& stored) {
    if (position.run != stored.run) position = rows::position_in(target, stored.run);
    position.next_number = stored.number;
    count(counts.samples, rows::insert_sample(target, position, stored.sample));
  });
  for (const StoredObservation& stored : source.stored_observations())
    count(counts.observations, rows::insert_observation(target, stored.observation));
  for (const Calibration& c : source.calibrations())
    count(counts.calibrations, rows::insert_calibration(target, c));
  for (const Baseline& b : source.baselines())
    count(counts.baselines, rows::insert_baseline(target, b));
  for (const Annotation& a : source.annotations(""))
    count(counts.annotations, rows::insert_annotation(target, a));
  for (const Removal& r : source.removals())
    count(counts.removals, rows::insert_removal(target, r));
  return counts;
}

[[noreturn]] void refuse_existing(const fs::path& target) {
  throw Error(ErrorKind::kInput,
              fmt::format("{} exists; name a new file for the backup", target.string()));
}

// Gives a complete file its name, durably and never over another file.
void publish(const fs::path& temporary, const fs::path& path) {
  const auto refuse = [&](int reason) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{}: the backup cannot be written: {}; choose another place",
                            path.string(), std::strerror(reason)));
  };
  const FileDescriptor file(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) refuse(errno);
  int renamed = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
  if (renamed != 0 && (errno == EINVAL || errno == ENOSYS))  // not on every file system
    renamed = ::rename(temporary.c_str(), path.c_str());
  if (renamed != 0 && errno == EEXIST) refuse_existing(path);
  if (renamed != 0) refuse(errno);
  const FileDescriptor folder(
      ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::fsync(folder.get()) != 0 && errno != EINVAL) refuse(errno);
}

}  // namespace

StoreInfo Store::info() const {
  return guarded(connection_->path(), "reading its size", [&] {
    StoreInfo info;
    info.path = connection_->path().string();
    info.schema = schema_of(connection_->database());
    info.file_bytes = Bytes{static_cast<std::int64_t>(fs::file_size(connection_->path()))};
    info.fingerprint = fingerprint(*connection_);
    for (const char* table : {"environments", "runs", "samples", "observations", "calibrations",
                              "baselines", "annotations", "removals"}) {
      const std::string sql = fmt::format("SELECT count(*) FROM {}", table);
      info.tables.push_back({table, connection_->database().execAndGet(sql).getInt64()});
    }
    return info;
  });
}

std::vector<std::string> Store::check() const {
  std::vector<std::string> problems;
  try {
    guarded(connection_->path(), "checking it", [&] {
      if (is_blank(connection_->path())) {
        problems.emplace_back(
            "it is empty: the program that began to write it was killed before it finished; "
            "delete it");
        return;
      }
      check_schema(*connection_, problems);
      check_pages_and_keys(*connection_, problems);
      // Rows of damaged pages would only repeat the errors found so far.
      if (problems.empty()) check_ids(*this, problems);
    });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    problems.emplace_back(error.what());
  }
  return problems;
}

void Store::backup(const fs::path& target) const {
  if (target.empty())
    throw Error(ErrorKind::kInput, "the name of the backup is empty; name a new file");
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error))) refuse_existing(target);
  // Under its name a backup is complete: one that is killed leaves only a temporary file.
  const fs::path path = fs::absolute(target);
  const fs::path temporary =
      path.parent_path() / fmt::format(".{}.{}.partial", path.filename().string(), getpid());
  const auto remove_temporary = [&] {
    fs::remove(temporary, error);
    fs::remove(temporary.string() + "-journal", error);
  };
  remove_temporary();  // of a killed process that had the same number
  try {
    guarded(target, "making a backup", [&] {
      SQLite::Database copy(temporary.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      copy.exec("PRAGMA synchronous = FULL");
      SQLite::Backup(copy, connection_->database()).executeStep();
    });
    publish(temporary, path);
  } catch (const Error&) {
    remove_temporary();
    throw;
  }
}

MergeCounts Store::merge(const Store& other) {
  std::error_code error;
  if (fs::equivalent(connection_->path(), other.connection_->path(), error)) return {};
  return guarded(other.connection_->path(), "merging from it", [&] {
    const ReadTransaction snapshot(*other.connection_);
    require_sound(other, other.connection_->path());
    return guarded(connection_->path(), "merging", [&] {
      WriteTransaction transaction(*connection_);
      const MergeCounts counts = copy_missing(other, *connection_);
      transaction.commit();
      return counts;
    });
  });
}

}  // namespace memfathom
