// Which GPUs CUDA_VISIBLE_DEVICES leaves to a process, and in which order.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace memfathom {

// The entries of the variable's value: numbers, or the beginnings of UUIDs ("GPU-...", "MIG-...").
// As CUDA reads it, the first entry that is neither ends the list, and an empty value shows no
// GPU. Nothing when the variable is not set (`value` is null): every GPU is visible.
std::optional<std::vector<std::string>> visible_devices(const char* value);

}  // namespace memfathom
