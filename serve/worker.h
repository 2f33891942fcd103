// The worker: a process that answers questions with the C interface, one after the other, over a
// socket.
//
// A question is "METHOD LENGTH\n" and its text; an answer is "STATUS LENGTH\n" and its text, STATUS
// a memfathom_status.
#pragma once

#include <string>

namespace memfathom {

inline constexpr int kWorkerSocket = 3;

// Answers until the socket ends. `database` may be empty: none. Returns the exit code.
int run_worker(const std::string& database);

}  // namespace memfathom
