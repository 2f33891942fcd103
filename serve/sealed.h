// seal_process: takes away what a process that only computes does not need.
#pragma once

namespace memfathom {

// From here on this process and its threads open no file, start no program and make no connection:
// such calls fail with EACCES. Throws Error(kEnvironment) if the system refuses.
void seal_process();

}  // namespace memfathom
