// The JSON of a GPU of this machine: `device` of an estimate.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/live_gpu.h"

namespace memfathom {

nlohmann::ordered_json gpu_json(const LiveGpu& gpu);

}  // namespace memfathom
