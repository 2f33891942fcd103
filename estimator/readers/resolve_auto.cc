#include "estimator/readers/resolve_auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "estimator/readers/model_config.h"

namespace memfathom {
namespace {

bool is_open(const ParsedFile& parsed, std::string_view key) {
  return std::find(parsed.autos.begin(), parsed.autos.end(), key) != parsed.autos.end();
}

// The hidden size of the job's model; nothing when it has none.
std::optional<std::int64_t> hidden_size(const Node& document) {
  const Node config = model_config(document);
  if (!config.is_map()) return std::nullopt;
  for (const char* key : {"hidden_size", "text_config.hidden_size", "n_embd", "d_model"}) {
    if (const Node* size = value_at(config, key)) return size->as_int(1, 1 << 20);
  }
  if (const Node* sizes = value_at(config, "hidden_sizes");
      sizes != nullptr && sizes->is_list() && !sizes->items().empty()) {
    const std::vector<std::int64_t> all = sizes->as_ints(1, 1 << 20);
    return *std::max_element(all.begin(), all.end());
  }
  return std::nullopt;
}

void resolve_bucket(const ParsedFile& parsed, std::string_view file_key, std::string_view job_key,
                    double share, Node& document, MergedJob& notes) {
  if (!is_open(parsed, file_key)) return;
  const std::optional<std::int64_t> hidden = hidden_size(document);
  if (!hidden) {
    notes.assumptions.push_back(
        fmt::format("{}: \"{}\" is auto, and the model has no hidden size to take it from: "
                    "DeepSpeed's own default",
                    parsed.file, file_key));
    return;
  }
  const std::int64_t size = static_cast<std::int64_t>(share * static_cast<double>(*hidden) *
                                                      static_cast<double>(*hidden));
  document.assign(job_key, Node::integer(std::max<std::int64_t>(size, 1)));
}

// bf16.enabled: auto follows the Trainer's flag: 16-bit weights where it says mixed precision.
void resolve_precision(const ParsedFile& parsed, Node& document) {
  const Node* precision = value_at(document, "training.precision");
  if (precision == nullptr || !precision->is_string()) return;
  for (const char* type : {"bf16", "fp16"}) {
    const std::string key = fmt::format("{}.enabled", type);
    if (is_open(parsed, key) && precision->as_string() == fmt::format("amp-{}", type)) {
      document.assign("training.precision", Node::string(type));
      return;
    }
  }
}

std::optional<std::int64_t> count_at(const Node& document, std::string_view key) {
  const Node* value = value_at(document, key);
  return value == nullptr ? std::nullopt : std::optional(value->as_int(1, std::int64_t{1} << 40));
}

// train_batch_size = micro-batch x accumulation x GPUs; DeepSpeed fills in what is missing.
void resolve_batch(const ParsedFile& parsed, Node& document, MergedJob& notes) {
  constexpr std::string_view kBatch = "training.batch_size";
  constexpr std::string_view kSteps = "training.gradient_accumulation_steps";
  const std::optional<std::int64_t> batch = count_at(document, kBatch);
  const std::optional<std::int64_t> steps = count_at(document, kSteps);
  const Node* whole = value_at(parsed.content, "train_batch_size");
  if (whole == nullptr || !whole->is_number()) {
    if (!batch && is_open(parsed, "train_micro_batch_size_per_gpu"))
      notes.assumptions.push_back(fmt::format(
          "{}: \"train_micro_batch_size_per_gpu\" is auto, and nothing else says a batch size: 1",
          parsed.file));
    return;
  }
  const std::int64_t gpus = count_at(document, "parallel.num_gpus").value_or(1);
  const std::int64_t per_gpu = whole->as_int(1) / gpus;
  if (value_at(document, "parallel.num_gpus") == nullptr) {
    notes.assumptions.push_back(
        fmt::format("{}: train_batch_size {} is of all GPUs, and no file says how many there are: "
                    "1 is counted (--num-gpus)",
                    parsed.file, whole->as_int()));
    if (!batch && whole->as_int() > 1)
      notes.unread.push_back({.file = parsed.file, .key = "train_batch_size", .concerns = "batch"});
  }
  if (!batch) {
    document.assign(kBatch, Node::integer(std::max<std::int64_t>(1, per_gpu / steps.value_or(1))));
  } else if (!steps) {
    document.assign(kSteps, Node::integer(std::max<std::int64_t>(1, per_gpu / *batch)));
  }
  const std::int64_t product =
      *count_at(document, kBatch) * count_at(document, kSteps).value_or(1) * gpus;
  if (product != whole->as_int()) {
    notes.warnings.push_back(
        fmt::format("train_batch_size is {} in {}, but a batch of {}, {} accumulation steps and {} "
                    "GPUs make {}; the latter was taken",
                    whole->as_int(), parsed.file, *count_at(document, kBatch),
                    count_at(document, kSteps).value_or(1), gpus, product));
  }
}

// verl divides a micro-batch whose name does not end in "_per_gpu" by the number of GPUs.
void divide_micro_batch(const ParsedFile& parsed, Node& document, MergedJob& notes) {
  for (const char* key :
       {"actor_rollout_ref.actor.ppo_micro_batch_size", "data.micro_batch_size"}) {
    const Node* own = value_at(parsed.content, fmt::format("{}_per_gpu", key));
    const Node* whole = value_at(parsed.content, key);
    const Node* batch = value_at(document, "training.batch_size");
    if ((own != nullptr && own->is_int()) || whole == nullptr || !whole->is_int() ||
        batch == nullptr || !batch->same_value(*whole) || whole->as_int() <= 1)
      continue;
    const std::optional<std::int64_t> gpus = count_at(document, "parallel.num_gpus");
    notes.assumptions.push_back(fmt::format(
        "{}: {} is of all GPUs, as verl has it{}", parsed.file, key,
        gpus ? "" : ", and nothing says how many there are: 1 is counted (--num-gpus)"));
    if (!gpus) notes.unread.push_back({.file = parsed.file, .key = key, .concerns = "batch"});
    document.assign("training.batch_size",
                    Node::integer(std::max<std::int64_t>(1, whole->as_int() / gpus.value_or(1))));
    return;
  }
}

// torchtune's recipes for several GPUs all shard with FSDP 2; the file does not say which recipe
// runs it.
void shard_recipe(const ParsedFile& parsed, Node& document, MergedJob& notes) {
  if (count_at(document, "parallel.num_gpus").value_or(1) < 2 ||
      value_at(document, "parallel.fsdp") != nullptr)
    return;
  document.assign("parallel.fsdp", Node::string("full"));
  document.assign("parallel.fsdp_version", Node::integer(2));
  notes.assumptions.push_back(
      fmt::format("{}: several GPUs are torchtune's distributed recipe, which shards with FSDP 2",
                  parsed.file));
}

}  // namespace

void resolve_auto_values(const std::vector<ParsedFile>& files, Node& document, MergedJob& notes) {
  for (const ParsedFile& parsed : files) {
    if (parsed.format == FileFormat::kTorchtune) shard_recipe(parsed, document, notes);
    if (parsed.format == FileFormat::kVerl || parsed.format == FileFormat::kCommandLine)
      divide_micro_batch(parsed, document, notes);
    if (parsed.format != FileFormat::kDeepSpeed) continue;
    resolve_bucket(parsed, "zero_optimization.reduce_bucket_size",
                   "parallel.zero.reduce_bucket_size", 1, document, notes);
    resolve_bucket(parsed, "zero_optimization.stage3_prefetch_bucket_size",
                   "parallel.zero.prefetch_bucket_size", 0.9, document, notes);
    resolve_precision(parsed, document);
    resolve_batch(parsed, document, notes);
  }
}

}  // namespace memfathom
