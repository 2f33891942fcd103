#include "estimator/readers/strange_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "core/lowercase.h"

namespace memfathom {
namespace {

constexpr auto kCounts = std::to_array<std::string_view>(
    {"num_nodes", "nnodes", "num_machines", "num_processes", "devices", "gpus_per_node",
     "n_gpus_per_node", "nproc_per_node", "quant_bits", "quantization_bit", "quant_bit"});

constexpr auto kDegrees = std::to_array<std::string_view>(
    {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
     "pipeline_parallel_degree", "context_parallel_degree"});

constexpr auto kSwitches = std::to_array<std::string_view>(
    {"lora_query", "lora_key", "lora_value", "lora_projection", "lora_mlp", "lora_head",
     "freeze_vit", "freeze_llm", "freeze_aligner"});

constexpr auto kTypes = std::to_array<std::string_view>(
    {"auto",    "float32", "float",     "fp32",     "32",         "bfloat16", "bf16",
     "float16", "fp16",    "half",      "16",       "no",         "none",     "32-true",
     "16-true", "64-true", "bf16-true", "16-mixed", "bf16-mixed", "amp-bf16", "amp-fp16"});
constexpr auto kEvaluations = std::to_array<std::string_view>(
    {"no", "steps", "epoch", "false", "true", "intervalstrategy.no", "intervalstrategy.steps",
     "intervalstrategy.epoch", "evalstrategy.no"});
constexpr auto kStrategies = std::to_array<std::string_view>(
    {"fsdp", "fsdp2", "fully_shard", "ddp", "auto", "none", "megatron_fsdp"});
constexpr auto kResharding =
    std::to_array<std::string_view>({"default", "always", "never", "true", "false"});
constexpr auto kWraps = std::to_array<std::string_view>({"transformer_based_wrap", "none"});
constexpr auto kRecomputations =
    std::to_array<std::string_view>({"none", "full", "selective", "memory_budget", "op"});

// Keys, by their ends, whose values are among some words.
struct Choice {
  std::string_view key;
  std::string_view concerns;
  std::span<const std::string_view> words;
};

constexpr auto kChoices = std::to_array<Choice>({
    {"dtype", "precision", kTypes},
    {"torch_dtype", "precision", kTypes},
    {"model_dtype", "precision", kTypes},
    {"eval_strategy", "batch", kEvaluations},
    {"evaluation_strategy", "batch", kEvaluations},
    {"policy.precision", "precision", kTypes},
    {"distributed.strategy", "sharding", kStrategies},
    {"activation_checkpoint.mode", "checkpointing", kRecomputations},
    {"fsdp_reshard_after_forward", "sharding", kResharding},
    {"fsdp_auto_wrap_policy", "sharding", kWraps},
    {"recompute_granularity", "checkpointing", kRecomputations},
});

bool is_path_end(std::string_view path, std::string_view end) {
  return path.ends_with(end) &&
         (path.size() == end.size() || path[path.size() - end.size() - 1] == '.');
}

// "$NODES", "${cluster.nodes}", "auto": what somebody else says.
bool is_left_open(const Node& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.as_string();
  return text.empty() || text == "auto" || text.find_first_of("${<") != std::string::npos;
}

std::string word_in(const Node& value) {
  std::string word = lowercase(value.is_string() ? value.as_string() : value.shown());
  return word.starts_with("torch.") ? word.substr(6) : word;
}

void check_count(const Node& value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (value.is_null() || value.is_list() || value.is_map() || is_left_open(value)) return;
  if (value.is_string()) {
    const std::string& text = value.as_string();  // "8" and torchrun's "1:4", a list of GPUs
    if (text == "none" || text == "gpu" ||
        text.find_first_not_of("0123456789:,") == std::string::npos)
      return;
  }
  value.as_int(-1, kMost);  // -1: all that are there
}

void check_choice(const Choice& choice, const Node& value, ParsedFile& parsed) {
  if (value.is_null() || value.is_list() || value.is_map() || is_left_open(value)) return;
  const std::string word = word_in(value);
  if (std::find(choice.words.begin(), choice.words.end(), word) != choice.words.end()) return;
  const auto& named = parsed.named_sections;
  if (std::find(named.begin(), named.end(), value.path()) != named.end()) return;
  withhold(
      value.path(), choice.concerns,
      fmt::format("{}: \"{}\" is {}, which is not known here", parsed.file, value.path(), word),
      parsed);
}

void check_map(const Node& map, ParsedFile& parsed) {
  for (const Node& entry : map.entries()) {
    if (entry.is_map()) {
      check_map(entry, parsed);
      continue;
    }
    const auto is_among = [&](const auto& keys) {
      return std::find(keys.begin(), keys.end(), entry.key()) != keys.end();
    };
    if (is_among(kCounts) || is_among(kDegrees)) check_count(entry);
    if (is_among(kSwitches) && !is_switch(entry)) entry.refuse("it must be true or false");
    for (const Choice& choice : kChoices) {
      if (is_path_end(entry.path(), choice.key)) {
        check_choice(choice, entry, parsed);
        break;
      }
    }
  }
}

}  // namespace

void check_values(ParsedFile& parsed) {
  const bool is_own =
      parsed.format == FileFormat::kJob || parsed.format == FileFormat::kModelConfig;
  if (!is_own && parsed.content.is_map()) check_map(parsed.content, parsed);
}

}  // namespace memfathom
