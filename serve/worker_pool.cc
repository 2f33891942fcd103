#include "serve/worker_pool.h"

#include <utility>

namespace memfathom {

WorkerPool::WorkerPool(std::size_t count, std::string database, std::chrono::milliseconds limit)
    : database_(std::move(database)), limit_(limit), free_(count) {
  // One is started now: a database that cannot be read is said at once.
  free_.back() = std::make_unique<WorkerProcess>(database_);
}

PoolAnswer WorkerPool::ask(const std::string& method, const std::string& text) {
  std::unique_ptr<WorkerProcess> worker;
  {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, limit_, [&] { return !free_.empty(); })) return {Asked::kBusy, {}};
    worker = std::move(free_.back());
    free_.pop_back();
  }
  PoolAnswer answered;
  try {
    if (!worker) worker = std::make_unique<WorkerProcess>(database_);
    std::optional<WorkerAnswer> answer =
        worker->ask(method, text, std::chrono::steady_clock::now() + limit_);
    if (answer) {
      answered.answer = std::move(*answer);
    } else {
      answered.how = Asked::kTooLong;
      worker.reset();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    free_.emplace_back();
    freed_.notify_one();
    throw;
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(worker));
  freed_.notify_one();
  return answered;
}

}  // namespace memfathom
