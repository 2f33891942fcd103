// Connection: one SQLite connection whose file was checked to be ours; and statements that are
// prepared once. Private to db/: no other folder sees SQLite.
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
  kReadWrite,  // creates the file and its directory when they are missing, and upgrades an old
               // schema
  kReadOnly,   // changes nothing, but for undoing what a killed writer left half done
  kImmutable,  // the same where nobody can write; a file on a read-only medium is opened like this
               // by itself
};

inline constexpr int kApplicationId = 0x6d666462;  // "mfdb"

class Connection {
 public:
  // Throws Error: kInput when the file is not ours, damaged or newer than this program;
  // kEnvironment when the file system refuses. Neither touches the file.
  static Connection open(const std::filesystem::path& path, Access access);

  SQLite::Database& database() { return *database_; }
  const std::filesystem::path& path() const { return path_; }

  // A statement that is kept prepared. `sql` is a literal: its address is the key.
  SQLite::Statement& statement(const char* sql);

  bool in_transaction();

 private:
  Connection(std::filesystem::path path, std::unique_ptr<SQLite::Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  std::filesystem::path path_;
  std::unique_ptr<SQLite::Database> database_;  // outlives its statements: declared before them
  std::unordered_map<const char*, SQLite::Statement> statements_;
};

// A write transaction, or nothing when one is already open. Rolls back unless committed.
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

// All reads see one state of the database, whatever others write meanwhile; nothing when a
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

// One sentence for what SQLite reported while `doing` ("storing a sample").
Error translated(const SQLite::Exception& exception, const std::filesystem::path& path,
                 const char* doing);

// Runs `action`; what SQLite throws leaves as an Error.
template <typename Action>
auto guarded(const std::filesystem::path& path, const char* doing, Action action) {
  try {
    return action();
  } catch (const SQLite::Exception& exception) {
    throw translated(exception, path, doing);
  }
}

}  // namespace memfathom
