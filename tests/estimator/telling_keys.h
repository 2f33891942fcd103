// Keys that no tool has and that nobody would take for harmless: what a reader must not read past.
#pragma once

#include <array>
#include <string_view>

namespace memfathom {

inline constexpr auto kTellingKeys = std::to_array<std::string_view>(
    {"lora_rank_x", "freeze_backbone_x", "num_experts_x", "optim_bits", "kv_heads_x", "attn_kind_x",
     "weights_dtype", "cpu_offload_x", "shard_degree_x", "context_parallel_x",
     "activation_checkpoint_x", "quantize_x", "micro_batch_size_x", "hidden_size_x",
     "sequence_length_x"});

// Those that stand for memory wherever they are; sizes also describe data.
inline constexpr auto kTellingAnywhere = std::to_array<std::string_view>(
    {"lora_rank_x", "optim_bits", "kv_heads_x", "attn_kind_x", "weights_dtype", "cpu_offload_x",
     "shard_degree_x", "context_parallel_x", "activation_checkpoint_x", "quantize_x",
     "micro_batch_size_x"});

}  // namespace memfathom
