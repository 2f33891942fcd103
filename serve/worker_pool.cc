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
  if (!take(worker, std::chrono::steady_clock::now() + limit_)) return {Asked::kBusy, {}};
  return ask_worker(std::move(worker), method, text, std::chrono::steady_clock::now() + limit_);
}

PoolAnswer WorkerPool::ask(const std::string& method, const std::string& text, Deadline deadline) {
  std::unique_ptr<WorkerProcess> worker;
  if (!take(worker, deadline)) return {Asked::kBusy, {}};
  return ask_worker(std::move(worker), method, text, deadline);
}

bool WorkerPool::take(std::unique_ptr<WorkerProcess>& worker, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!freed_.wait_until(lock, deadline, [&] { return !free_.empty(); })) return false;
  worker = std::move(free_.back());
  free_.pop_back();
  return true;
}

PoolAnswer WorkerPool::ask_worker(std::unique_ptr<WorkerProcess> worker, const std::string& method,
                                  const std::string& text, Deadline deadline) {
  PoolAnswer answered;
  try {
    if (!worker) worker = std::make_unique<WorkerProcess>(database_);
    std::optional<WorkerAnswer> answer = worker->ask(method, text, deadline);
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
