// Component: the purpose of a byte of device memory. The names are those of docs/contract.md §4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memfathom {

enum class Component : std::uint8_t {
  kParameters,
  kBuffers,
  kGradients,
  kOptimizerState,
  kActivations,
  kTemporaries,
  kLogitsLoss,
  kInputs,
  kKvCache,
  kAdapterParameters,
  kWorkspaceCublas,
  kWorkspaceCudnn,
  kWorkspaceCufft,
  kCommunication,
  kAllocatorSlack,
  kContext,
  kFramework,
  kUnaccounted,
};

inline constexpr std::size_t kComponentCount = 18;

inline constexpr std::array<std::string_view, kComponentCount> kComponentNames{
    "parameters",       "buffers",
    "gradients",        "optimizer_state",
    "activations",      "temporaries",
    "logits_loss",      "inputs",
    "kv_cache",         "adapter_parameters",
    "workspace_cublas", "workspace_cudnn",
    "workspace_cufft",  "communication",
    "allocator_slack",  "context",
    "framework",        "unaccounted"};

constexpr std::string_view to_string(Component component) {
  return kComponentNames[static_cast<std::size_t>(component)];
}

}  // namespace memfathom
