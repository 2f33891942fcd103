// A local GPU as text: total and free memory, and the processes that use the rest.
#pragma once

#include <string>

#include "cli/command.h"
#include "core/live_gpu.h"

namespace memfathom {

std::string gpu_text(const LiveGpu& gpu, const Context& context);

}  // namespace memfathom
