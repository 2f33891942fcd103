// gpu_count: the GPUs of a job, where its files say them in parts or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/document.h"

namespace memfathom {

// Of settings that name the GPUs of one machine and the machines. `nodes`: null, or no number (an
// interpolation), is one machine. Neither may exceed `most`.
inline std::int64_t gpus_on_nodes(const Node& per_node, const Node* nodes, std::int64_t most) {
  const std::int64_t machines = nodes != nullptr && nodes->is_int() ? nodes->as_int(1, most) : 1;
  return per_node.as_int(1, most) * machines;
}

// Whether a job is sharded among GPUs whose number it does not say.
bool shards_among_unknown(const Node& document);

// Files often ask for sharding and leave the number of GPUs to the launcher. The fewest are then
// counted, and the assumption says so.
void assume_gpus(const Node& document, std::vector<std::string>& assumptions);

}  // namespace memfathom
