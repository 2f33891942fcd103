#include "db/workspace_cache.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyTimeoutMilliseconds = 2'000;
constexpr int kApplicationId = 0x6d667763;  // "mfwc"
constexpr std::size_t kPendingLimit = 4096;

// A cache may be lost: no syncs. A file that is not such a cache is left alone.
std::unique_ptr<SQLite::Database> open_cache(const fs::path& path) {
  fs::create_directories(path.parent_path());
  auto database = std::make_unique<SQLite::Database>(
      path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyTimeoutMilliseconds);
  const int id = database->execAndGet("PRAGMA application_id").getInt();
  const bool empty = database->execAndGet("SELECT count(*) FROM sqlite_schema").getInt() == 0;
  if (id != kApplicationId && !empty) throw SQLite::Exception("it is not a workspace cache");
  database->exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = TRUNCATE");
  SQLite::Transaction transaction(*database, SQLite::TransactionBehavior::IMMEDIATE);
  database->exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database->exec(
      "CREATE TABLE IF NOT EXISTS workspaces (key TEXT PRIMARY KEY, workspace_bytes INTEGER NOT "
      "NULL) STRICT,"
      " WITHOUT ROWID");
  transaction.commit();
  return database;
}

}  // namespace

struct WorkspaceCache::File {
  explicit File(const fs::path& path)
      : database(open_cache(path)),
        select(*database, "SELECT workspace_bytes FROM workspaces WHERE key = ?") {}

  std::unique_ptr<SQLite::Database> database;
  SQLite::Statement select;
};

std::string workspace_cache_key(const std::string& query, const std::string& architecture,
                                const std::string& library_version) {
  return fmt::format("{} | {} | {}", architecture, library_version, query);
}

WorkspaceCache::WorkspaceCache(const fs::path& path) {
  try {
    file_ = std::make_unique<File>(fs::absolute(path));
  } catch (const std::exception& error) {
    trouble_ = fmt::format("the workspace cache {} is not used ({}); delete it to start a new one",
                           path.string(), error.what());
  }
}

WorkspaceCache::~WorkspaceCache() { write_pending(); }

std::optional<Bytes> WorkspaceCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = pending_.find(key); found != pending_.end()) return found->second;
  if (!file_) return std::nullopt;
  try {
    file_->select.tryReset();
    file_->select.bind(1, key);
    if (!file_->select.executeStep()) return std::nullopt;
    const Bytes bytes{file_->select.getColumn(0).getInt64()};
    file_->select.tryReset();  // holds no lock while nobody asks
    return bytes;
  } catch (const SQLite::Exception&) {
    return std::nullopt;
  }
}

void WorkspaceCache::insert(const std::string& key, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  pending_[key] = bytes;
  if (file_ && pending_.size() >= kPendingLimit) write_pending();
}

void WorkspaceCache::write_pending() {
  if (!file_ || pending_.empty()) return;
  try {
    file_->select.tryReset();
    SQLite::Transaction transaction(*file_->database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(
        *file_->database, "INSERT OR REPLACE INTO workspaces (key, workspace_bytes) VALUES (?, ?)");
    for (const auto& [key, bytes] : pending_) {
      insert.reset();
      insert.bind(1, key);
      insert.bind(2, bytes.count());
      insert.exec();
    }
    transaction.commit();
    pending_.clear();
  } catch (const SQLite::Exception& error) {
    trouble_ = fmt::format("the workspace cache was not written: {}", error.what());
    file_.reset();  // the answers stay in memory
  }
}

}  // namespace memfathom
