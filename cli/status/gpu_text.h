// A GPU of this machine as text and JSON: what it has, what is left, and who holds the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/estimate/live_gpu.h"

namespace memfathom {

std::string gpu_text(const LiveGpu& gpu, const Context& context);
nlohmann::ordered_json gpu_json(const LiveGpu& gpu);
// "python (pid 7) 2.00 GiB", one for each process.
std::vector<std::string> process_descriptions(const LiveGpu& gpu);

}  // namespace memfathom
