#include "db/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "db/migration.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyTimeoutMilliseconds = 30'000;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeaderSize = 100;
constexpr std::size_t kApplicationIdOffset = 68;

enum class FileState { kAbsent, kEmpty, kOurs };

// Reads the header with plain file calls: opening a foreign database through SQLite could already
// change it.
FileState inspect(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return FileState::kAbsent;
  if (fs::is_directory(status)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is a directory; name a database file with --db", path.string()));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // reading a pipe would wait for ever
    throw Error(ErrorKind::kInput, fmt::format("{} is not a regular file; name a database file "
                                               "with --db",
                                               path.string()));
  }
  std::array<char, kHeaderSize> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("{} cannot be read; check its permissions or name another database with --db",
                    path.string()));
  }
  file.read(header.data(), header.size());
  // A writer that lost power while creating the file leaves zeros, which its journal rolls back.
  if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; }))
    return FileState::kEmpty;
  if (std::string_view(header.data(), kMagic.size()) != kMagic) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{} is not a SQLite database; name another file with --db", path.string()));
  }
  unsigned id = 0;
  for (std::size_t i = 0; i < 4; ++i)
    id = id << 8 | static_cast<unsigned char>(header[kApplicationIdOffset + i]);
  if (id != static_cast<unsigned>(kApplicationId)) {
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{} is a SQLite database of another program (application_id {:#x}, ours is {:#x}); "
            "name another file with --db",
            path.string(), id, kApplicationId));
  }
  return FileState::kOurs;
}

fs::path journal_of(const fs::path& path) { return path.string() + "-journal"; }

bool has_journal(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(journal_of(path), error);
  return !error && size > 0;
}

void require_writable(const fs::path& path) {
  const fs::path directory = path.parent_path();
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be created ({}); name another database with --db",
                            directory.string(), error.message()));
  }
  // SQLite would open a write-protected file read-only and fail at the first sample, an hour into a
  // calibration.
  const bool file_refuses = fs::exists(path, error) && access(path.c_str(), W_OK) != 0;
  if (file_refuses || access(directory.c_str(), W_OK) != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be written: {} is read-only; name another database with "
                            "--db or MEMFATHOM_DB",
                            path.string(), file_refuses ? "the file" : "its directory"));
  }
}

void require_content(const fs::path& path, FileState state) {
  if (state == FileState::kAbsent) {
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{} does not exist; `memfathom calibrate` makes it, or name another file with --db",
            path.string()));
  }
  if (state == FileState::kEmpty && !has_journal(path)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is empty; name a database of memfathom with --db", path.string()));
  }
}

void refuse_newer(SQLite::Database& database, const fs::path& path) {
  const int schema = schema_of(database);
  if (schema > latest_schema()) {
    throw Error(ErrorKind::kInput, fmt::format("{} has schema {}; this version supports schemas "
                                               "up to {}; use a newer memfathom, or "
                                               "another file with --db",
                                               path.string(), schema, latest_schema()));
  }
}

// json_valid(), asked of SQLite itself through a connection of its own.
class JsonValidity {
 public:
  JsonValidity() : query_(database_, "SELECT json_valid(?)") {}

  bool judge(const char* text, int size) {
    query_.reset();
    query_.bindNoCopy(1, text, size);
    return query_.executeStep() && query_.getColumn(0).getInt() != 0;
  }

 private:
  SQLite::Database database_{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
  SQLite::Statement query_;
};

void call_json_valid(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;  // NULL, as SQLite's own
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (text == nullptr) return sqlite3_result_error_nomem(context);
  try {
    auto* validity = static_cast<JsonValidity*>(sqlite3_user_data(context));
    sqlite3_result_int(context, validity->judge(text, sqlite3_value_bytes(values[0])) ? 1 : 0);
  } catch (const std::exception& error) {
    sqlite3_result_error(context, error.what(), -1);
  }
}

// SQLite 3.38 to 3.40 count json_valid(), which our CHECKs call, among the functions that an
// untrusted schema must not call: its declaration has the flag of harmless functions, whose meaning
// is the opposite for built-in ones. This declares it harmless.
void declare_json_valid(SQLite::Database& database) {
  auto validity = std::make_unique<JsonValidity>();
  const int result = sqlite3_create_function_v2(
      database.getHandle(), "json_valid", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
      validity.get(), call_json_valid, nullptr, nullptr,
      [](void* owned) { delete static_cast<JsonValidity*>(owned); });
  static_cast<void>(validity.release());  // SQLite owns it, also if it refused
  if (result != SQLITE_OK) throw SQLite::Exception(database.getHandle(), result);
}

// The file may be crafted: defensive mode, cell size checks, no function with side effects in its
// schema, and neither triggers nor views, which our schema does not have.
void distrust(SQLite::Database& database) {
  declare_json_valid(database);
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  database.exec("PRAGMA cell_size_check = ON");
}

std::unique_ptr<SQLite::Database> open_for_writing(const fs::path& path) {
  auto database = std::make_unique<SQLite::Database>(
      path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
      kBusyTimeoutMilliseconds);
  refuse_newer(*database, path);
  distrust(*database);
  // TRUNCATE, because FULL then syncs the truncation that commits; DELETE would require a sync of
  // the directory too.
  database->exec(
      "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144");
  if (schema_of(*database) < latest_schema()) migrate(*database);
  database->exec("PRAGMA foreign_keys = ON");
  return database;
}

// The next connection that may write rolls back a killed writer's journal.
void roll_back_journal(const fs::path& path) {
  try {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE, kBusyTimeoutMilliseconds);
    database.execAndGet("SELECT count(*) FROM sqlite_schema");
  } catch (const SQLite::Exception&) {
    // The read-only connection fails for the same reason and reports it.
  }
}

bool on_read_only_medium(const fs::path& path) {
  struct statvfs medium {};
  return statvfs(path.c_str(), &medium) == 0 && (medium.f_flag & ST_RDONLY) != 0;
}

// A read-only medium does not allow locks and journals and, without writers, does not need them.
std::string immutable_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

std::unique_ptr<SQLite::Database> open_for_reading(const fs::path& path, bool immutable) {
  if (has_journal(path)) {
    if (immutable) {
      throw Error(
          ErrorKind::kEnvironment,
          fmt::format(
              "{} was left half written by a program that was killed, and its medium is read-only; "
              "copy it and {} to a place that can be written",
              path.string(), journal_of(path).string()));
    }
    roll_back_journal(path);
  }
  auto database = immutable ? std::make_unique<SQLite::Database>(
                                  immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI)
                            : std::make_unique<SQLite::Database>(
                                  path.string(), SQLite::OPEN_READONLY, kBusyTimeoutMilliseconds);
  refuse_newer(*database, path);
  distrust(*database);
  if (schema_of(*database) == latest_schema()) return database;
  // An older schema is upgraded in an in-memory copy; the next command that writes upgrades the
  // file.
  auto copy =
      std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SQLite::Backup(*copy, *database).executeStep();
  distrust(*copy);
  migrate(*copy);
  return copy;
}

}  // namespace

Connection Connection::open(const fs::path& path, Access access) {
  if (path.empty()) {
    throw Error(ErrorKind::kInput, "the name of the database is empty; name a file with --db");
  }
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const FileState state = inspect(absolute);
  if (access != Access::kReadWrite) require_content(absolute, state);
  return guarded(absolute, "opening it", [&] {
    if (access == Access::kReadWrite) {
      require_writable(absolute);
      return Connection(absolute, open_for_writing(absolute));
    }
    const bool immutable = access == Access::kImmutable || on_read_only_medium(absolute);
    return Connection(absolute, open_for_reading(absolute, immutable));
  });
}

bool is_blank(const fs::path& path) { return inspect(path) == FileState::kEmpty; }

SQLite::Statement& Connection::statement(const char* sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second;
  return statements_
      .emplace(std::piecewise_construct, std::forward_as_tuple(sql),
               std::forward_as_tuple(*database_, sql))
      .first->second;
}

bool Connection::in_transaction() { return sqlite3_get_autocommit(database_->getHandle()) == 0; }

WriteTransaction::WriteTransaction(Connection& connection)
    : connection_(connection), open_(!connection.in_transaction()) {
  if (open_) connection_.database().exec("BEGIN IMMEDIATE");
}

WriteTransaction::~WriteTransaction() {
  // After a full disk SQLite has already rolled back, so a failure here adds no information.
  if (open_) connection_.database().tryExec("ROLLBACK");
}

void WriteTransaction::commit() {
  if (open_) connection_.database().exec("COMMIT");
  open_ = false;
}

ReadTransaction::ReadTransaction(Connection& connection)
    : connection_(connection), open_(!connection.in_transaction()) {
  if (open_) connection_.database().exec("BEGIN");
}

ReadTransaction::~ReadTransaction() {
  if (open_) connection_.database().tryExec("COMMIT");
}

namespace {

// What SQLite says of our statements if the tables are another program's. Any other SQL error is a
// bug of ours.
bool is_foreign_schema(std::string_view said) {
  for (const std::string_view sign :
       {"no such table", "no such column", "has no column", "no such index", "already exists",
        "no such function", "unknown function", "unsupported file format", "foreign key mismatch",
        "malformed", "unsafe use of", "cannot modify", "view"}) {
    if (said.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Error translated(const SQLite::Exception& exception, const fs::path& path, const char* doing) {
  const std::string file = path.string();
  const char* said = exception.what();
  switch (exception.getErrorCode() & 0xff) {
    case SQLITE_FULL:
      return Error(ErrorKind::kEnvironment,
                   fmt::format("{}: the disk is full while {}; nothing was changed; free some "
                               "space or use another file "
                               "with --db",
                               file, doing));
    case SQLITE_IOERR:
    case SQLITE_NOLFS:
    case SQLITE_NOMEM:
      return Error(
          ErrorKind::kEnvironment,
          fmt::format("{}: the system failed while {} ({}); nothing was changed; check the disk",
                      file, doing, said));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return Error(ErrorKind::kEnvironment,
                   fmt::format("{}: locked by another process for {} s while {}; try again "
                               "when it has finished",
                               file, kBusyTimeoutMilliseconds / 1000, doing));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error(ErrorKind::kEnvironment,
                   fmt::format("{}: access was denied while {} ({}); check the permissions of the "
                               "file and its directory, "
                               "or use another file with --db",
                               file, doing, said));
    case SQLITE_CORRUPT:
      return Error(
          ErrorKind::kInput,
          fmt::format("{} is damaged, as {} showed ({}); restore a backup, or set it aside and "
                      "calibrate again",
                      file, doing, said));
    case SQLITE_NOTADB:
      return Error(ErrorKind::kInput,
                   fmt::format("{} is not a SQLite database; name another file with --db", file));
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return Error(ErrorKind::kInput,
                   fmt::format("{}: SQLite rejected a value while {} ({})", file, doing, said));
    case SQLITE_ERROR:
      if (is_foreign_schema(said)) {
        return Error(ErrorKind::kInput,
                     fmt::format("{} does not have the tables of memfathom, as {} showed ({}); "
                                 "restore a backup, or name another file with --db",
                                 file, doing, said));
      }
      [[fallthrough]];
    default:
      if (std::string_view(said) == "out of memory") {  // while SQLite noted what was wrong
        return Error(ErrorKind::kEnvironment,
                     fmt::format("{}: out of host memory while {}; nothing was changed; close "
                                 "other programs",
                                 file, doing));
      }
      return Error(ErrorKind::kInternal,
                   fmt::format("{}: SQLite failed while {} ({})", file, doing, said));
  }
}

}  // namespace memfathom
