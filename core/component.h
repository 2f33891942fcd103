// Component: the purpose of a byte of device memory. The names are those of docs/contract.md §4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/enum_names.h"

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

template <>
inline constexpr auto kEnumNames<Component> =
    std::to_array<EnumName<Component>>({{Component::kParameters, "parameters"},
                                        {Component::kBuffers, "buffers"},
                                        {Component::kGradients, "gradients"},
                                        {Component::kOptimizerState, "optimizer_state"},
                                        {Component::kActivations, "activations"},
                                        {Component::kTemporaries, "temporaries"},
                                        {Component::kLogitsLoss, "logits_loss"},
                                        {Component::kInputs, "inputs"},
                                        {Component::kKvCache, "kv_cache"},
                                        {Component::kAdapterParameters, "adapter_parameters"},
                                        {Component::kWorkspaceCublas, "workspace_cublas"},
                                        {Component::kWorkspaceCudnn, "workspace_cudnn"},
                                        {Component::kWorkspaceCufft, "workspace_cufft"},
                                        {Component::kCommunication, "communication"},
                                        {Component::kAllocatorSlack, "allocator_slack"},
                                        {Component::kContext, "context"},
                                        {Component::kFramework, "framework"},
                                        {Component::kUnaccounted, "unaccounted"}});

inline constexpr std::size_t kComponentCount = kEnumNames<Component>.size();

constexpr std::string_view to_string(Component component) { return enum_name(component); }

}  // namespace memfathom
