#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "core/suggest.h"
#include "estimator/advise/changes.h"

namespace memfathom {
namespace {

constexpr std::string_view kFrozenCopy = "frozen-copy";

struct NamedStrategy {
  std::string_view name;
  std::string_view settings;  // key=value, blanks between
};

constexpr auto kStrategies = std::to_array<NamedStrategy>({
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
    {"fused-optimizer", ""},
    {"adamw-8bit", "training.optimizer=adamw-8bit"},
    {"adafactor", "training.optimizer=adafactor"},
    {"sgd", "training.optimizer=sgd"},
    {"lora", ""},
    {"qlora", "training.quantization=nf4"},
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
    {"inference", "training.mode=inference"},
    {"training", "training.mode=train"},
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
    {"precision", "training.precision"},
    {"optimizer", "training.optimizer"},
    {"attention", "training.attention"},
    {"checkpointing", "training.gradient_checkpointing"},
    {"mode", "training.mode"},
    {"zero", "parallel.zero_stage"},
    {"gpu", "target.gpu"},
    {"memory", "target.memory"},
    {"width", "model.config.width"},
    {"depth", "model.config.layers"},
    {"gpus", "parallel.num_gpus"},
    {"tensor", "parallel.tensor"},
    {"pipeline", "parallel.pipeline"},
});

// Another GPU is not the one whose memory the job names.
constexpr auto kTargetKeys = std::to_array<std::string_view>(
    {"target.gpu", "target.memory", "target.device", "target.used_by_others"});

// The trained model once more, frozen beside it: what distilling and un-learning compare with.
KeyChange frozen_copy(const Job& job) {
  Node modules = Node::list();
  const Node& written = job.model.source();
  const Node* parts = written.find("modules");
  const auto copy = [&](const Node& model) {
    Node module = Node::map();
    module.set("name", Node::string("original"));
    module.set("model", model);
    module.set("train", Node::string("frozen"));
    module.set("no_grad", Node::boolean(true));
    modules.append(std::move(module));
  };
  if (parts == nullptr) {
    Node model = written;
    Node trained = Node::map();
    trained.set("name", Node::string("trained"));
    for (const char* key : {"train", "adapter"}) {
      if (const Node* value = model.find(key)) trained.set(key, *value);
      model.erase(key);
    }
    copy(model);
    trained.set("model", std::move(model));
    modules.append(std::move(trained));
  } else {
    bool copied = false;  // the first that learns, wherever it stands
    for (const Node& part : parts->items()) {
      const Node* train = part.find("train");
      const bool frozen = train != nullptr && train->is_string() && train->as_string() == "frozen";
      if (!frozen && !copied) copy(part.at("model"));
      copied = copied || !frozen;
      modules.append(part);
    }
  }
  Node model = Node::map();
  model.set("modules", std::move(modules));
  return {"model", std::move(model)};
}

KeyChange setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  for (const auto& [name, full] : kKeys) {
    if (key == name) key = full;
  }
  return {std::string(key), parse_yaml(text.substr(equals + 1), "strategy", 0)};
}

Patch named_patch(std::string_view name) {
  for (const NamedStrategy& known : kStrategies) {
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
  throw Error(ErrorKind::kUsage, fmt::format("\"{}\" is not a known strategy, nor a key=value; {}",
                                             name, suggestion(name, names)));
}

}  // namespace

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const NamedStrategy& known : kStrategies) names.push_back(known.name);
  names.push_back(kFrozenCopy);
  return names;
}

Patch strategy_patch(std::string_view strategy, const Job& job) {
  Patch patch;
  std::string_view rest = strategy;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part == kFrozenCopy) {
      patch.push_back(frozen_copy(job));
      continue;
    }
    if (part.find('=') != std::string_view::npos) {
      KeyChange change = setting(part);
      if (change.key == "target.gpu" || change.key == "target.memory") {
        for (const std::string_view key : kTargetKeys) {
          if (key != change.key) patch.push_back({std::string(key), Node()});
        }
      }
      patch.push_back(std::move(change));
      continue;
    }
    patch = joined(std::move(patch), named_patch(part));
    if (part == "fused-optimizer") patch.push_back(fused_change(job.training.optimizer.name));
    // An adapter that is there already is kept.
    if ((part == "lora" || part == "qlora") && !job.training.lora) {
      patch = joined(std::move(patch), lora_patch(job));
    }
  }
  return patch;
}

}  // namespace memfathom
