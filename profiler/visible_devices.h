// visible_devices: the GPUs that CUDA_VISIBLE_DEVICES exposes, and their order.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace memfathom {

// The entries of the variable: numbers or UUID prefixes ("GPU-...", "MIG-..."). As in CUDA, the
// first invalid entry ends the list, and an empty value hides every GPU. Returns nullopt if the
// variable is not set (`value` is null): every GPU is visible.
std::optional<std::vector<std::string>> visible_devices(const char* value);

}  // namespace memfathom
