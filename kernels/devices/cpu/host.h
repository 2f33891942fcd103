// Host: what this machine is, read from /proc and the library versions.
#pragma once

#include "core/environment.h"

namespace memfathom::cpu {

Environment host_environment();

// What may be taken without being killed for it: nine tenths of what is free now, within the
// control group's limit.
Bytes usable_memory();

}  // namespace memfathom::cpu
