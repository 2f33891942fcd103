#include "estimator/command_line/script_deeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "estimator/command_line/reading.h"
#include "estimator/command_line/script_text.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

// Calls that change the memory of a training step. Where a flag decides the same, or the script has
// a switch for it that is off, the text says nothing new.
constexpr auto kDeeds = std::to_array<ScriptDeed>({
    {"colossalai", "sharding", "", "trains with ColossalAI"},
    {"FullyShardedDataParallel(", "sharding", "parallel.fsdp", "shards the model with FSDP"},
    {"FSDP(", "sharding", "parallel.fsdp", "shards the model with FSDP"},
    {"fully_shard(", "sharding", "parallel.fsdp", "shards the model with FSDP"},
    {"deepspeed.initialize(", "sharding", "parallel.zero_stage", "starts DeepSpeed"},
    {"init_inference(", "sharding", "", "starts DeepSpeed's inference"},
    {"gradient_checkpointing_enable(", "checkpointing", "training.gradient_checkpointing",
     "turns gradient checkpointing on"},
    {"checkpoint_sequential(", "checkpointing", "training.gradient_checkpointing",
     "checkpoints activations"},
    {"torch.autocast(", "precision", "training.precision", "computes under autocast"},
    {"amp.autocast(", "precision", "training.precision", "computes under autocast"},
    {"GradScaler(", "precision", "training.precision", "computes in fp16"},
    {"model.half(", "precision", "training.precision", "converts the model to fp16"},
    {"torch_dtype=torch.bfloat16", "precision", "training.precision", "loads bf16 weights"},
    {"torch_dtype=torch.float16", "precision", "training.precision", "loads fp16 weights"},
    {"AveragedModel(", "memory", "", "keeps an average of the weights"},
    {"ModelEma", "memory", "", "keeps an average of the weights"},
    {"EMAModel(", "memory", "", "keeps an average of the weights"},
    {"deepcopy(model", "model", "", "keeps a copy of the model"},
});

// A default of the script or a flag of the command that says the same with a word of its own.
bool is_switched(const ScriptText& script, std::string_view concerns,
                 const CommandReading& reading) {
  if (has_option_for(script, concerns)) return true;
  // The number of GPUs and the model's name say nothing of how the script shards or copies it.
  if (concerns == "sharding" || concerns == "model") return false;
  const std::vector<Node>& flags = reading.flags.tree.entries();
  return std::any_of(flags.begin(), flags.end(), [&](const Node& flag) {
    return !flag.is_map() && concern_of(flag.key(), Node::string("set")) == concerns;
  });
}

}  // namespace

std::vector<ScriptDeed> deeds_in(std::string_view python) {
  std::vector<ScriptDeed> found;
  std::copy_if(kDeeds.begin(), kDeeds.end(), std::back_inserter(found),
               [&](const ScriptDeed& deed) { return python.find(deed.call) != std::string::npos; });
  return found;
}

void leave_deeds_open(const ScriptText& script, CommandReading& reading) {
  std::vector<std::string_view> named;
  for (const ScriptDeed& deed : script.deeds) {
    if ((!deed.decided.empty() && reading.decides(deed.decided)) ||
        is_switched(script, deed.concerns, reading) ||
        std::find(named.begin(), named.end(), deed.what) != named.end())
      continue;
    named.push_back(deed.what);
    reading.leave_open(
        reading.launch.program, deed.concerns,
        fmt::format("{}: {} {} itself; that is not counted", reading.file, script.path, deed.what));
  }
}

}  // namespace memfathom
