#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "core/suggest.h"
#include "estimator/advise/changes.h"

namespace memfathom {
namespace {

struct Named {
  std::string_view name;
  std::string_view settings;  // key=value, blanks between
};

constexpr auto kStrategies = std::to_array<Named>({
    {"baseline", ""},
    {"checkpointing", "training.gradient_checkpointing=full"},
    {"no-checkpointing", "training.gradient_checkpointing=none"},
    {"flash", "training.attention=flash"},
    {"efficient", "training.attention=efficient"},
    {"eager", "training.attention=eager"},
    {"fp32", "training.precision=fp32"},
    {"bf16", "training.precision=bf16"},
    {"fp16", "training.precision=fp16"},
    {"amp", "training.precision=amp-bf16"},
    {"amp-bf16", "training.precision=amp-bf16"},
    {"amp-fp16", "training.precision=amp-fp16"},
    {"adamw-8bit", "training.optimizer=adamw-8bit"},
    {"adafactor", "training.optimizer=adafactor"},
    {"sgd", "training.optimizer=sgd"},
    {"lora", "training.lora.rank=16"},
    {"qlora", "training.lora.rank=16 training.quantization=nf4"},
    {"int8", "training.quantization=int8"},
    {"nf4", "training.quantization=nf4"},
    {"fused-loss", "training.fused_loss=true"},
    {"zero0", "parallel.zero_stage=0"},
    {"zero1", "parallel.zero_stage=1"},
    {"zero2", "parallel.zero_stage=2"},
    {"zero3", "parallel.zero_stage=3"},
    {"fsdp", "parallel.fsdp=full"},
    {"offload", "parallel.offload.parameters=cpu parallel.offload.optimizer=cpu"},
    {"offload-optimizer", "parallel.offload.optimizer=cpu"},
    {"offload-parameters", "parallel.offload.parameters=cpu"},
    {"offload-activations", "parallel.offload.activations=cpu"},
    {"expandable", "allocator.options=\"expandable_segments:True\""},
});

// Short names for keys that strategies vary: batch=4.
constexpr auto kKeys = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"batch", "training.batch_size"},
    {"sequence", "training.sequence_length"},
    {"image", "training.image_size"},
    {"frames", "training.num_frames"},
    {"accumulation", "training.gradient_accumulation_steps"},
    {"rank", "training.lora.rank"},
    {"gpus", "parallel.num_gpus"},
    {"tensor", "parallel.tensor"},
    {"pipeline", "parallel.pipeline"},
});

KeyChange setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  for (const auto& [name, full] : kKeys) {
    if (key == name) key = full;
  }
  return {std::string(key), parse_yaml(text.substr(equals + 1), "strategy", 0)};
}

Patch named_patch(std::string_view name) {
  for (const Named& known : kStrategies) {
    if (known.name != name) continue;
    Patch patch;
    std::string_view rest = known.settings;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      patch.push_back(setting(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return patch;
  }
  const std::vector<std::string_view> names = strategy_names();
  throw Error(ErrorKind::kUsage,
              fmt::format("\"{}\" is not a known strategy; {}, or write key=value", name,
                          suggestion(name, names)));
}

}  // namespace

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Named& known : kStrategies) names.push_back(known.name);
  return names;
}

Patch strategy_patch(std::string_view strategy, const Job& job) {
  Patch patch;
  std::string_view rest = strategy;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.find('=') != std::string_view::npos) {
      patch.push_back(setting(part));
      continue;
    }
    // The rank of an adapter that is there already is kept.
    for (KeyChange& change : named_patch(part)) {
      if (change.key == "training.lora.rank" && job.training.lora) continue;
      patch.push_back(std::move(change));
    }
  }
  return patch;
}

}  // namespace memfathom
