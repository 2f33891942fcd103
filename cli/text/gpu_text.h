// A GPU of this machine as text: what it has, what is left, and which processes hold the rest.
#pragma once

#include <string>

#include "cli/command.h"
#include "core/live_gpu.h"

namespace memfathom {

std::string gpu_text(const LiveGpu& gpu, const Context& context);

}  // namespace memfathom
