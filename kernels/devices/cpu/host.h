// host: this machine's description, from /proc and the library versions.
#pragma once

#include "core/environment.h"

namespace memfathom::cpu {

Environment host_environment();

// The memory a process can use without being killed: 90 % of the free memory, within the cgroup's
// limit.
Bytes usable_memory();

}  // namespace memfathom::cpu
