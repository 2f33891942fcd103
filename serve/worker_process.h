// WorkerProcess: the server's end of one worker.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "memfathom/memfathom.h"
#include "serve/framing.h"

namespace memfathom {

struct WorkerAnswer {
  memfathom_status status = MEMFATHOM_OK;
  std::string text;
};

// For one thread at a time.
class WorkerProcess {
 public:
  // Starts it. Throws Error(kEnvironment).
  explicit WorkerProcess(const std::string& database);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Nothing if the worker ended or did not answer in time; it is then of no further use.
  std::optional<WorkerAnswer> ask(const std::string& method, const std::string& text,
                                  Deadline deadline);

 private:
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace memfathom
