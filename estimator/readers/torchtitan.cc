// torchtitan's TOML: a model by name and flavor, FSDP 2 with bf16 over fp32 weights, degrees of
// parallelism.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/lowercase.h"
#include "estimator/models/presets.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "training.local_batch_size"},
    {"training.batch_size", "training.batch_size"},
    {"training.sequence_length", "training.seq_len"},
    {"parallel.tensor", "parallelism.tensor_parallel_degree"},
    {"parallel.tensor", "training.tensor_parallel_degree"},
    {"parallel.pipeline", "parallelism.pipeline_parallel_degree"},
    {"parallel.pipeline", "experimental.pipeline_parallel_degree"},
    {"parallel.offload.parameters", "training.enable_cpu_offload", FieldKind::kOffload},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "compile.enable",
    "training.compile",
    "parallelism.context_parallel_degree",
    "experimental.context_parallel_degree",
    "parallelism.enable_async_tensor_parallel",
    "experimental.enable_async_tensor_parallel",
});

// The folder of its tokenizer is called as the model; else the name and the flavor say it. Its
// llama3 has the shapes of Llama 3.1.
std::string base_model(const Node& tree) {
  const std::string name = lowercase(text_at(tree, "model.name"));
  std::string flavor = text_at(tree, "model.flavor");
  std::string folder = text_at(tree, "model.hf_assets_path");
  while (folder.ends_with('/')) folder.pop_back();
  folder.erase(0, folder.rfind('/') + 1);
  if (flavor.find("debug") != std::string::npos) return name + "-" + flavor;
  if (!folder.empty() && folder != "tokenizer") return folder;
  if (flavor.find('/') != std::string::npos) return flavor;
  std::string family = name == "llama3" ? "llama-3.1" : name == "llama2" ? "llama-2" : name;
  std::replace(family.begin(), family.end(), '_', '-');
  return family + "-" + lowercase(flavor);
}

std::int64_t degree(const Node& tree, std::initializer_list<const char*> keys,
                    std::int64_t otherwise) {
  for (const char* key : keys) {
    const Node* value = value_at(tree, key);
    if (value != nullptr && value->is_int()) return value->as_int(-1, 1 << 20);
  }
  return otherwise;
}

// -1 shards over all GPUs that are left.
void set_sharding(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::int64_t shards =
      degree(tree,
             {"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree",
              "training.data_parallel_degree"},
             -1);
  const std::int64_t replicas = degree(
      tree,
      {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"}, 1);
  const std::int64_t others =
      degree(tree, {"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}, 1) *
      degree(tree,
             {"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}, 1) *
      degree(tree, {"parallelism.context_parallel_degree", "experimental.context_parallel_degree"},
             1);
  if (shards != 1) {
    if (replicas > 1 && shards > 1) {
      set_hybrid_fsdp(shards, parsed);
    } else {
      parsed.set("parallel.fsdp", Node::string(replicas > 1 ? "hybrid" : "full"));
    }
    parsed.set("parallel.fsdp_version", Node::integer(2));
  }
  if (shards > 0) {
    parsed.set("parallel.num_gpus", Node::integer(shards * replicas * others));
  } else {
    parsed.assumptions.push_back(
        fmt::format("{}: the file shards over as many GPUs as there are; --num-gpus says how many",
                    parsed.file));
  }
  if (const Node* experts = value_at(tree, "parallelism.expert_parallel_degree");
      experts != nullptr && experts->is_int() && experts->as_int() > 1)
    leave_open(
        "parallelism.expert_parallel_degree", "sharding",
        fmt::format("{}: expert parallelism; experts are counted as FSDP shards them", parsed.file),
        parsed);
  const std::string keeps = text_at(tree, "parallelism.fsdp_reshard_after_forward", "default");
  if (keeps == "never")
    leave_open("parallelism.fsdp_reshard_after_forward", "sharding",
               fmt::format("{}: fsdp_reshard_after_forward is never; weights that stay gathered "
                           "between forward and backward are not counted",
                           parsed.file),
               parsed);
}

void set_precision(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::string stored = text_at(tree, "training.dtype", "float32");
  const std::string compute = text_at(tree, "training.mixed_precision_param", "bfloat16");
  const bool mixed = stored == "float32" && compute == "bfloat16";
  parsed.set("training.precision", Node::string(mixed                  ? "amp-bf16"
                                                : stored == "bfloat16" ? "bf16"
                                                                       : "fp32"));
  const std::string reduce = text_at(tree, "training.mixed_precision_reduce", "float32");
  parsed.set("parallel.reduce_precision", Node::string(reduce == "bfloat16" ? "bf16" : "fp32"));
  for (const char* key : {"model.converters", "float8.enable_float8_linear"}) {
    const Node* value = value_at(tree, key);
    const bool is_list = value != nullptr && value->is_list();
    if (value == nullptr || (is_list ? value->items().empty() : !is_on(*value))) continue;
    leave_open(key, "precision",
               fmt::format("{}: {} computes in 8 bits; bf16 is counted", parsed.file, key), parsed);
  }
}

void set_checkpointing(ParsedFile& parsed) {
  const std::string mode = text_at(parsed.content, "activation_checkpoint.mode", "selective");
  parsed.set("training.gradient_checkpointing",
             Node::string(mode == "full" || mode == "selective" ? mode : "none"));
  const Node* option = value_at(parsed.content, "activation_checkpoint.selective_ac_option");
  if (mode == "selective")
    withhold("activation_checkpoint.mode", "checkpointing",
             fmt::format("{}: selective_ac_option {}; selective checkpointing recomputes the "
                         "attention in memfathom (docs/jobs.md)",
                         parsed.file, option != nullptr ? option->shown() : "op"),
             parsed);
}

}  // namespace

bool is_torchtitan(const Node& tree) {
  return value_at(tree, "model.flavor") != nullptr && value_at(tree, "training") != nullptr;
}

void read_torchtitan(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  Node optimizer = Node::map();
  optimizer.set("name", Node::string(lowercase(text_at(tree, "optimizer.name", "AdamW"))));
  optimizer.set("implementation", Node::string(text_at(tree, "optimizer.implementation", "fused")));
  parsed.set("training.optimizer", std::move(optimizer));
  set_precision(parsed);
  set_checkpointing(parsed);
  set_sharding(parsed);
  parsed.set("training.lengths", Node::string("fixed"));
  const Node* norm = value_at(tree, "training.max_norm");
  parsed.set("training.gradient_clipping",
             Node::boolean(norm == nullptr || (norm->is_number() && norm->as_number() > 0)));
  parsed.base_model = base_model(tree);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
