#include "estimator/advise/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/document_path.h"
#include "core/version.h"
#include "estimator/job/describe.h"
#include "estimator/job/target_capability.h"

namespace memfathom {
namespace {

Patch one(std::string key, Node value) { return {{std::move(key), std::move(value)}}; }

// FlashAttention 2 refuses GPUs before Ampere ("only supports Ampere GPUs or newer"), and bfloat16
// has no tensor cores there; an unnamed GPU is taken for a recent one.
bool is_ampere_or_later(const Job& job) {
  const int capability = named_capability(job.target);
  return capability == 0 || capability >= 80;
}

// Whether a preset, a model type or a layer is one with a Fourier transform. Its weights are
// complex: torch.optim.Adafactor refuses those, transformers' own goes on with complex second
// moments, and bitsandbytes' kernels on a GPU take fp32, fp16 and bf16 alone. torch.fft has no
// bfloat16 on a GPU (pytorch#117844) and float16 only for powers of two (since 1.12).
bool names_fourier(const Node& node) {
  static constexpr std::array<std::string_view, 4> kNames{"preset", "family", "model_type", "type"};
  if (node.is_string()) {
    const std::string& word = node.as_string();
    return std::find(kNames.begin(), kNames.end(), node.key()) != kNames.end() &&
           (word == "spectral_conv" || word.find("fno") != std::string::npos);
  }
  const std::vector<Node>* inner =
      node.is_list() ? &node.items() : (node.is_map() ? &node.entries() : nullptr);
  return inner != nullptr && std::any_of(inner->begin(), inner->end(), names_fourier);
}

bool is_fourier(const ModelSpec& model) {
  if (const ModuleList* list = model.modules()) {
    return std::any_of(list->modules.begin(), list->modules.end(),
                       [](const ModuleSpec& module) { return is_fourier(module.model); });
  }
  const NetworkConfig* network = model.config();
  return names_fourier(model.source()) || (network != nullptr && names_fourier(network->config));
}

bool computes_in_16_bits(const Job& job) {
  return job.training.precision.autocast.has_value() ||
         job.training.precision.parameters != DType::kFp32;
}

std::string optimizer_text(const Node& document) {
  const Node* training = document.find("training");
  const Node* optimizer = training == nullptr ? nullptr : training->find("optimizer");
  if (optimizer != nullptr && optimizer->is_map()) optimizer = optimizer->find("name");
  return optimizer != nullptr && optimizer->is_string() ? optimizer->as_string() : "adamw";
}

bool is_adam(OptimizerName name) {
  return name == OptimizerName::kAdam || name == OptimizerName::kAdamW;
}

void add_precision(const Job& job, bool fourier, std::vector<SingleChange>& changes) {
  const Precision& precision = job.training.precision;
  const std::string now(precision_name(precision));
  const std::string half = is_ampere_or_later(job) ? "bf16" : "fp16";
  const bool full = !precision.autocast && precision.parameters == DType::kFp32;
  if (full && job.training.mode == Mode::kTrain) {
    Patch patch = one("training.precision", Node::string("amp-" + half));
    if (half == "fp16") patch.push_back({"training.grad_scaler", Node::boolean(true)});
    changes.push_back(
        {"amp", fmt::format("precision {} -> amp-{}", now, half),
         // Autocast on CUDA does not cast for torch.fft (no entry in ATen/autocast_mode.h).
         fourier ? "the model must give its Fourier transforms fp32; other activations take half"
                 : "16-bit copies of the weights are kept while a step runs; activations take half",
         ChangeGroup::kPrecision, ChangeKind::kFree, 4, std::move(patch)});
  }
  if (precision.parameters == DType::kFp32 && !fourier) {
    changes.push_back(
        {half, fmt::format("precision {} -> {}", now, half),
         job.training.mode == Mode::kTrain
             ? "weights, gradients and optimizer states lose precision; small updates may vanish"
             : "16-bit results",
         ChangeGroup::kPrecision,
         job.training.mode == Mode::kTrain ? ChangeKind::kDifferent : ChangeKind::kFree, 1,
         one("training.precision", Node::string(half))});
  }
}

// Its forward pass makes all logits at once, without the checkpoints of training.
void add_evaluation(const TrainingSpec& training, std::vector<SingleChange>& changes) {
  if (training.evaluation_batch <= training.batch_size) return;
  changes.push_back({"evaluation-batch",
                     fmt::format("evaluation batch_size {} -> {}", training.evaluation_batch,
                                 training.batch_size),
                     "evaluation takes more passes", ChangeGroup::kEvaluation, ChangeKind::kFree, 1,
                     one("training.evaluation.batch_size", Node::integer(training.batch_size))});
}

// The reference model of preference pairs takes as much as the weights, and is not needed on the
// GPU.
void add_reference(const Job& job, std::vector<SingleChange>& changes) {
  if (!job.training.preference || job.training.reference != Reference::kModel) return;
  const bool adapters = job.training.lora.has_value();
  const char* reference = adapters ? "disabled-adapter" : "precomputed";
  changes.push_back({adapters ? "reference-by-adapter" : "reference-precomputed",
                     fmt::format("preference.reference model -> {}", reference),
                     adapters ? "none: without its adapters the model is its own reference"
                              : "its log probabilities are computed in one pass before training",
                     ChangeGroup::kReference,
                     ChangeKind::kFree,
                     1,
                     {reference_change(reference)}});
}

// A DeepSpeed that keeps the states on the host has its own Adam for them.
bool takes_another_optimizer(const Job& job, bool fourier) {
  return is_adam(job.training.optimizer.name) && !fourier && !job.parallel.offload_optimizer;
}

// torch.optim's Adam in its default form makes copies of the size of the weights in each step; its
// fused form, since PyTorch 2.0, does not. DeepSpeed's own is fused, and so is the Trainer's
// default of today. Fused kernels refuse complex parameters.
bool may_be_fused(const Job& job, bool fourier) {
  constexpr Version kHasFusedAdam{2, 0};
  const TrainingSpec& training = job.training;
  const std::string& torch = job.target.stack.version;
  if (torch.empty() ? training.trainer_optimizer
                    : Version::parse(torch).value_or(kHasFusedAdam) < kHasFusedAdam)
    return false;
  return is_adam(training.optimizer.name) && !training.optimizer.bitsandbytes && !fourier &&
         training.optimizer_options().form != OptimizerForm::kFused &&
         job.parallel.zero_stage == 0 && !job.parallel.offload_optimizer;
}

// One word, which a Trainer's file can say, unless the job sets more of its optimizer.
Patch fused_optimizer(const Node& document, OptimizerName name) {
  const Node* now = value_at(document, "training.optimizer");
  for (const char* key : {"state_precision", "master_weights", "weight_decay"}) {
    if (now != nullptr && now->is_map() && now->find(key) != nullptr)
      return one("training.optimizer.implementation", Node::string("fused"));
  }
  return {fused_change(name)};
}

void add_training(const Node& document, const Job& job, bool fourier,
                  std::vector<SingleChange>& changes) {
  const TrainingSpec& training = job.training;
  if (training.settings.checkpointing == Checkpointing::kNone) {
    changes.push_back({"checkpointing", "gradient_checkpointing none -> full",
                       "every block's forward pass runs twice", ChangeGroup::kCheckpointing,
                       ChangeKind::kCheckpointing, 0,
                       one("training.gradient_checkpointing", Node::string("full")), true});
  }
  if (!training.settings.fused_loss) {
    changes.push_back({"fused-loss", "fused_loss false -> true",
                       "needs a fused or chunked cross entropy in the training script",
                       ChangeGroup::kLoss, ChangeKind::kFree, 3,
                       one("training.fused_loss", Node::boolean(true))});
  }
  if (may_be_fused(job, fourier)) {
    changes.push_back({"fused-optimizer",
                       fmt::format("optimizer {} -> {}-fused", optimizer_text(document),
                                   enum_name(training.optimizer.name)),
                       "set fused=True (Trainer: optim: adamw_torch_fused); no other change",
                       ChangeGroup::kOptimizer, ChangeKind::kFree, 1,
                       fused_optimizer(document, training.optimizer.name)});
  }
  if (takes_another_optimizer(job, fourier)) {
    changes.push_back(
        {"adamw-8bit", fmt::format("optimizer {} -> adamw-8bit", optimizer_text(document)),
         "states in 8 bits; needs bitsandbytes", ChangeGroup::kOptimizer, ChangeKind::kDifferent, 0,
         one("training.optimizer", Node::string("adamw-8bit"))});
    changes.push_back(
        {"adafactor", fmt::format("optimizer {} -> adafactor", optimizer_text(document)),
         "a different optimizer; retune the learning-rate schedule", ChangeGroup::kOptimizer,
         ChangeKind::kDifferent, 6, one("training.optimizer", Node::string("adafactor"))});
  }
  add_evaluation(training, changes);
  add_reference(job, changes);
  add_lora_changes(document, job, changes);
}

void add_sharding(const Job& job, std::vector<SingleChange>& changes) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.num_gpus < 2 || parallel.fsdp != Fsdp::kNone) return;
  static constexpr std::array<const char*, 3> kCosts{
      "shards optimizer states across the GPUs; one extra all-gather of the weights per step",
      "also shards gradients; about the traffic of plain data parallelism",
      "all-gathers weights layer by layer; 50 % more traffic"};
  for (int stage = parallel.zero_stage + 1; stage <= 3; ++stage) {
    changes.push_back({fmt::format("zero{}", stage),
                       fmt::format("zero_stage {} -> {}", parallel.zero_stage, stage),
                       kCosts[static_cast<std::size_t>(stage - 1)], ChangeGroup::kSharding,
                       ChangeKind::kSharding, stage,
                       one("parallel.zero_stage", Node::integer(stage))});
  }
  if (parallel.zero_stage == 0) {
    changes.push_back({"fsdp", "fsdp none -> full",
                       "all-gathers weights layer by layer; 50 % more traffic",
                       ChangeGroup::kSharding, ChangeKind::kSharding, 4,
                       one("parallel.fsdp", Node::string("full"))});
  }
}

// On one GPU, too, ZeRO-3 can keep weights and states on the host.
void add_hosted_training(const Job& job, std::vector<SingleChange>& changes) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.num_gpus > 1 || parallel.zero_stage > 0 || parallel.fsdp != Fsdp::kNone ||
      job.training.quantization != Quantization::kNone)
    return;
  changes.push_back({"zero3-offload",
                     "ZeRO-3 with weights and optimizer on the host",
                     "weights are copied to the GPU for every use and the optimizer step runs on "
                     "the CPU; needs DeepSpeed",
                     ChangeGroup::kSharding,
                     ChangeKind::kOffload,
                     2,
                     {{"parallel.zero_stage", Node::integer(3)},
                      {"parallel.offload.parameters", Node::string("cpu")},
                      {"parallel.offload.optimizer", Node::string("cpu")}},
                     true});
}

// Where the optimizer may go to the host: DeepSpeed has a ZeRO stage then, and FSDP takes the
// weights along.
std::optional<Patch> optimizer_to_host(const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.offload_optimizer || parallel.pipeline > 1) return std::nullopt;
  Patch patch = one("parallel.offload.optimizer", Node::string("cpu"));
  if (parallel.fsdp != Fsdp::kNone)
    patch.push_back({"parallel.offload.parameters", Node::string("cpu")});
  else if (parallel.zero_stage == 0)
    patch.push_back({"parallel.zero_stage", Node::integer(2)});
  return patch;
}

// In training DeepSpeed fetches weights from the host in stage 3 only (offload_param is "valid only
// with stage 3", and other stages do not read it), and FSDP takes the optimizer along; one GPU
// alone has zero3-offload for it. Weights of few bits belong to kernels that want them on the GPU.
std::optional<Patch> weights_to_host(const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.offload_parameters || job.training.quantization != Quantization::kNone ||
      parallel.fsdp != Fsdp::kNone)
    return std::nullopt;
  Patch patch = one("parallel.offload.parameters", Node::string("cpu"));
  if (job.training.mode != Mode::kTrain || parallel.zero_stage == 3) return patch;
  if (parallel.num_gpus < 2 && parallel.zero_stage == 0) return std::nullopt;
  patch.push_back({"parallel.zero_stage", Node::integer(3)});
  return patch;
}

void add_offload(const Job& job, std::vector<SingleChange>& changes) {
  if (job.training.mode == Mode::kTrain) {
    if (std::optional<Patch> patch = optimizer_to_host(job)) {
      const bool whole = patch->back().key == "parallel.offload.parameters";
      changes.push_back({"offload-optimizer",
                         whole ? "offload of weights and optimizer none -> cpu"
                               : "offload of optimizer none -> cpu",
                         "the optimizer step runs on the CPU and uses host memory",
                         ChangeGroup::kOffloadOptimizer, ChangeKind::kOffloadOptimizer, 0,
                         std::move(*patch), true});
    }
    if (!job.parallel.offload_activations)
      changes.push_back({"offload-activations", "offload of activations none -> cpu",
                         "activations are copied to the host and back",
                         ChangeGroup::kOffloadActivations, ChangeKind::kOffload, 0,
                         one("parallel.offload.activations", Node::string("cpu"))});
  }
  if (std::optional<Patch> patch = weights_to_host(job))
    changes.push_back({"offload-parameters", "offload of parameters none -> cpu",
                       "weights are copied from the host for every use",
                       ChangeGroup::kOffloadParameters, ChangeKind::kOffload, 1,
                       std::move(*patch)});
}

void add_frozen_modules(const Node& document, const Job& job, std::vector<SingleChange>& changes) {
  const Node* modules = document.at("model").find("modules");
  if (modules == nullptr || job.training.mode != Mode::kTrain) return;
  for (std::size_t i = 0; i < modules->items().size(); ++i) {
    const Node& module = modules->items()[i];
    const Node* train = module.find("train");
    if (train != nullptr && train->is_string() && train->as_string() != "full") continue;
    const Node* name = module.find("name");
    const std::string shown =
        name != nullptr && name->is_string() ? name->as_string() : fmt::format("module {}", i);
    changes.push_back({"freeze-" + shown,
                       fmt::format("{}: full training -> frozen", shown),
                       "this module is no longer trained",
                       ChangeGroup::kTrainable,
                       ChangeKind::kDifferent,
                       5,
                       {{fmt::format("model.modules[{}].train", i), Node::string("frozen")},
                        {fmt::format("model.modules[{}].no_grad", i), Node::boolean(true)}}});
  }
}

}  // namespace

KeyChange fused_change(OptimizerName name) {
  return {"training.optimizer", Node::string(fmt::format("{}-fused", enum_name(name)))};
}

KeyChange reference_change(const char* reference) {
  Node preference = Node::map();
  preference.set("method", Node::string("dpo"));
  preference.set("reference", Node::string(reference));
  return {"training.preference", std::move(preference)};
}

std::string SingleChange::costs_at(double time_factor) const {
  constexpr double kShownAsSlower = 1.005;  // "x1.01"
  return may_be_slower && time_factor >= kShownAsSlower ? costs + "; slower" : costs;
}

std::vector<SingleChange> possible_changes(const Node& document, const Job& job) {
  std::vector<SingleChange> changes;
  if (job.allocator.backend == Backend::kCaching &&
      job.allocator.options.find("expandable_segments:True") == std::string::npos) {
    const std::string& now = job.allocator.options;
    changes.push_back(
        {"expandable", "expandable_segments off -> on",
         "set an environment variable (PYTORCH_CUDA_ALLOC_CONF); no other change",
         ChangeGroup::kAllocator, ChangeKind::kFree, 0,
         one("allocator.options", Node::string(now.empty() ? "expandable_segments:True"
                                                           : now + ",expandable_segments:True"))});
  }
  // A recorded step is what it is: only the allocator that replays it can be another.
  if (job.model.trace() != nullptr) return changes;
  const bool fourier = is_fourier(job.model);
  if (job.training.settings.attention != AttentionImplementation::kFlash) {
    const char* kernel =
        computes_in_16_bits(job) && is_ampere_or_later(job) ? "flash" : "efficient";
    changes.push_back({kernel, fmt::format("attention -> {}", kernel), "none; it is faster too",
                       ChangeGroup::kAttention, ChangeKind::kFree, 2,
                       one("training.attention", Node::string(kernel))});
  }
  add_precision(job, fourier, changes);
  if (job.training.mode == Mode::kTrain) {
    add_training(document, job, fourier, changes);
    add_sharding(job, changes);
    add_hosted_training(job, changes);
  } else if (job.training.quantization == Quantization::kNone) {
    changes.push_back({"int8", "quantization none -> int8", "weights in 8 bits",
                       ChangeGroup::kTrainable, ChangeKind::kFewerBits, 0,
                       one("training.quantization", Node::string("int8")), true});
    changes.push_back({"nf4", "quantization none -> nf4",
                       "weights in 4 bits; a little less accurate", ChangeGroup::kTrainable,
                       ChangeKind::kFewerBits, 1, one("training.quantization", Node::string("nf4")),
                       true});
  }
  add_offload(job, changes);
  add_frozen_modules(document, job, changes);
  return changes;
}

}  // namespace memfathom
