// Lets one kind of call fail at every n in a single run of a command: at each call the process
// forks, the copy sees the call fail and goes on to its end in files of its own, and the first
// process goes on as if nothing had happened.
//
//   MEMFATHOM_FAULT_WALK=malloc      "malloc+": from the n-th on all fail; "malloc/stacks": one n
//   for each distinct call stack MEMFATHOM_FAULT_FOLDER=F         the command's folder; a copy
//   works in "F.copy", which stands at F in its mount namespace MEMFATHOM_FAULT_CONTROL=3
//   descriptor to which "N STATUS LEFT\n" is written for every n, and which answers with a byte
//   MEMFATHOM_FAULT_PATIENCE=120     seconds after which a copy is killed; STATUS is then -1
//   MEMFATHOM_FAULT_FROM=1           the first n that is tried
//
// While the process has children there is no copy, since they would serve both: STATUS is -2, and
// whoever walks tries that n in a run of its own. Otherwise STATUS is that of waitpid(); LEFT is 1
// if processes of the copy were still there when it had ended. Needs root for the mounts.
#pragma once

#include <pthread.h>

namespace faults {

struct Walk {
  const char* call = nullptr;  // null: no walk
  unsigned call_length = 0;
  bool persistent = false;
};

// Reads the variables and takes them out of the environment, so that commands of the command do not
// walk.
Walk read_walk();

// At the n-th call: true in the copy, whose call is to fail; false in the process that goes on.
bool fails_in_a_copy(long n);

// In a copy: a mutex that the thread held when it forked is held by the copy's thread.
void adopt(pthread_mutex_t& mutex);

}  // namespace faults
