// Connection: one SQLite connection to a checked memfathom database, with cached prepared
// statements. Private to db/: no other folder uses SQLite.
#pragma once

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/error.h"

namespace memfathom {

enum class Access {
  kReadWrite,  // creates the file and its directory if missing, upgrades an old schema
  kReadOnly,   // changes nothing, except to roll back a killed writer's journal
  kImmutable,  // read-only without locks; used automatically on read-only media
};

inline constexpr int kApplicationId = 0x6d666462;  // "mfdb"

class Connection {
 public:
  // Throws Error: kInput if the file is not a memfathom database, damaged or newer than this
  // program; kEnvironment if the file system fails. The file is unchanged in both cases.
  static Connection open(const std::filesystem::path& path, Access access);

  SQLite::Database& database() { return *database_; }
  const std::filesystem::path& path() const { return path_; }

  // A cached prepared statement. `sql` must be a literal: its address is the key.
  SQLite::Statement& statement(const char* sql);

  bool in_transaction();

 private:
  Connection(std::filesystem::path path, std::unique_ptr<SQLite::Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  std::filesystem::path path_;
  std::unique_ptr<SQLite::Database>
      database_;  // declared before its statements, so that it outlives them
  std::unordered_map<const char*, SQLite::Statement> statements_;
};

// Whether a file has no content: only zeros, or no bytes, where a database has its header.
bool is_blank(const std::filesystem::path& path);

// A write transaction; does nothing if one is already open. Rolls back unless committed.
class WriteTransaction {
 public:
  explicit WriteTransaction(Connection& connection);
  ~WriteTransaction();
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  void commit();

 private:
  Connection& connection_;
  bool open_;
};

// All reads see one state of the database, despite concurrent writers; does nothing if a
// transaction is open.
class ReadTransaction {
 public:
  explicit ReadTransaction(Connection& connection);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  Connection& connection_;
  bool open_;
};

// The error message for what SQLite reported while `doing` ("storing a sample").
Error translated(const SQLite::Exception& exception, const std::filesystem::path& path,
                 const char* doing);

// Runs `action` and converts SQLite's exceptions to Error.
template <typename Action>
auto guarded(const std::filesystem::path& path, const char* doing, Action action) {
  try {
    return action();
  } catch (const SQLite::Exception& exception) {
    throw translated(exception, path, doing);
  }
}

}  // namespace memfathom
