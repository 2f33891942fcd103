// WorkerPool: a few workers, lent to one request at a time. A worker that exceeds its time is ended
// and replaced.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/worker_process.h"

namespace memfathom {

enum class Asked { kAnswered, kBusy, kTooLong };

struct PoolAnswer {
  Asked how = Asked::kAnswered;
  WorkerAnswer answer;
};

// Thread-safe.
class WorkerPool {
 public:
  WorkerPool(std::size_t count, std::string database, std::chrono::milliseconds limit);

  // Waits for a free worker and for its answer, each at most as long as the limit.
  PoolAnswer ask(const std::string& method, const std::string& text);
  // Both until the deadline.
  PoolAnswer ask(const std::string& method, const std::string& text, Deadline deadline);

 private:
  bool take(std::unique_ptr<WorkerProcess>& worker, Deadline deadline);
  PoolAnswer ask_worker(std::unique_ptr<WorkerProcess> worker, const std::string& method,
                        const std::string& text, Deadline deadline);

  std::string database_;
  std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<WorkerProcess>> free_;  // an empty one is started when it is needed
};

}  // namespace memfathom
