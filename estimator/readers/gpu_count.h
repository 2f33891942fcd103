// gpu_count: the GPUs of a job whose settings name those of one machine and the machines.
#pragma once

#include <cstdint>

#include "core/document.h"

namespace memfathom {

// `nodes`: null, or no number (an interpolation), is one machine. Neither may exceed `most`.
inline std::int64_t gpus_on_nodes(const Node& per_node, const Node* nodes, std::int64_t most) {
  const std::int64_t machines = nodes != nullptr && nodes->is_int() ? nodes->as_int(1, most) : 1;
  return per_node.as_int(1, most) * machines;
}

}  // namespace memfathom
