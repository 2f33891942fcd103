#include "estimator/job_model/built_model.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "estimator/job/read_job.h"
#include "estimator/job_model/layer_benchmark.h"
#include "estimator/job_model/module_set.h"
#include "estimator/job_model/preference.h"
#include "estimator/models/factory.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/block_adapters.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

LoraOptions lora_options(const LoraSpec& lora, const BuildOverrides& plan) {
  LoraOptions options;
  options.rank = lora.rank;
  options.targets = lora.targets;
  options.dropout = lora.dropout.value_or(options.dropout);
  const DType own = lora.precision.value_or(DType::kFp32);  // PEFT's autocast_adapter_dtype
  options.precision = plan.compute.value_or(own);
  return options;
}

BuildOptions build_options(const TrainingSpec& training, const std::optional<TrainSpec>& train,
                           const BuildOverrides& plan) {
  BuildOptions options;
  options.dtype = plan.compute.value_or(training.precision.parameters);
  options.deferred = plan.deferred;
  options.quantization = training.quantization;
  options.packed = training.packed;
  options.quantize_head = training.settings.library == ModelLibrary::kLitgpt;
  // Nothing trains through these: the library makes whole weights of them.
  if (training.quantization == Quantization::kMxfp4 && training.mode == Mode::kTrain)
    options.quantization = Quantization::kNone;
  if (training.lora) {
    options.train = TrainableSubset::kLora;
    options.lora = lora_options(*training.lora, plan);
  }
  if (train) train->apply(options);
  return options;
}

// What the network is told. A forward of a causal model builds its cache unless told otherwise, as
// the library does, and the cache is part of what it returns. It matters where that is all there
// is, or where the script keeps it; the tensor-level accounts are of a forward without one.
ModelSettings model_settings(const TrainingSpec& training, const Job& job,
                             const BuildOverrides& plan) {
  ModelSettings settings = training.settings;
  settings.precision = plan.compute.value_or(training.precision.parameters);
  settings.runs_body_alone = job.training.mode != Mode::kTrain;
  settings.kv_cache = training.kv_cache.value_or(settings.kv_cache);
  const bool output_is_kept = job.training.mode == Mode::kInference || loss_is_in_script(settings);
  settings.use_cache =
      training.use_cache.value_or(output_is_kept && job.allocator.backend == Backend::kCaching);
  return settings;
}

std::unique_ptr<Network> build_one(BuiltModel& built, Session& session, const ModelSpec& model,
                                   BuildOptions options, ModelSettings settings,
                                   std::vector<std::string>& assumptions) {
  const bool adapted = options.adapter_rank > 0;
  built.builders.push_back(std::make_unique<Builder>(session, std::move(options)));
  Builder& builder = *built.builders.back();
  if (adapted) settings.adapters = std::make_shared<BlockAdapters>(builder);
  std::unique_ptr<Network> network = make_network(builder, model, settings, assumptions);
  builder.finish();
  if (adapted && !builder.block_adapter(0)) {
    model.source().refuse(
        "train: adapter puts a bottleneck after each transformer block, and this family is not "
        "built from such blocks; use lora or last");
  }
  return network;
}

constexpr std::array<std::string_view, 16> kLoopKeys{
    "optimizer",         "mode",           "gradient_accumulation_steps",
    "gradient_clipping", "zero_grad",      "samples_per_epoch",
    "drop_last",         "warmup_forward", "grad_scaler",
    "hold_output",       "lengths",        "preference",
    "cudnn_benchmark",   "compile",        "new_tokens",
    "retain_graph"};

// The training keys a module gives beside its own, over the job's.
TrainingSpec module_training(const Node& module, const TrainingSpec& job) {
  static constexpr std::array<std::string_view, 6> kOwn{"name",    "model",   "train",
                                                        "adapter", "no_grad", "training"};
  TrainingSpec training = job;
  const auto check = [&](const Node& given) {
    if (std::find(kLoopKeys.begin(), kLoopKeys.end(), given.key()) != kLoopKeys.end()) {
      given.refuse("it belongs to the loop that all modules share; give it under training");
    }
  };
  Node overrides = Node::map();
  for (const Node& entry : module.entries()) {
    if (std::find(kOwn.begin(), kOwn.end(), entry.key()) != kOwn.end()) continue;
    check(entry);
    overrides.set(entry.key(), entry);
  }
  read_training(overrides, training);
  if (const Node* nested = module.find("training")) {
    for (const Node& entry : nested->entries()) check(entry);
    read_training(*nested, training);
  }
  return training;
}

BuiltModel build_modules(Session& session, const Job& job, const BuildOverrides& plan,
                         std::vector<std::string>& assumptions) {
  const ModuleList& list = *job.model.modules();
  if (job.training.preference)
    list.source.refuse("training.preference needs one model, not several modules");
  BuiltModel built;
  std::vector<ModulePart> parts;
  for (const ModuleSpec& module : list.modules) {
    const TrainingSpec training = module_training(module.source, job.training);
    ModulePart part;
    part.index = session.ledger().add_module(module.name);
    part.no_grad = module.no_grad;
    if (!plan.compute) part.autocast = autocast_of(training);
    if (training.batch_size != job.training.batch_size) part.batch_size = training.batch_size;
    const Scoped<ModuleIndex> scope(session.module, part.index);
    part.network =
        build_one(built, session, module.model, build_options(training, module.train, plan),
                  model_settings(training, job, plan), assumptions);
    part.trainable = !built.builders.back()->trainable().empty();
    if (part.no_grad && part.trainable) {
      if (module.train)
        module.source.at("no_grad").refuse(
            "a module that runs without gradients cannot be trained; set train: frozen");
      for (const NamedTensor& parameter : built.builders.back()->parameters())
        Tensor(parameter.tensor).set_requires_grad(false);
      part.trainable = false;
    }
    parts.push_back(std::move(part));
  }
  built.network = std::make_unique<ModuleSet>(session, std::move(parts));
  return built;
}

// The policy, and a reference where the job has one of its own.
void add_preference(BuiltModel& built, Session& session, const Job& job, const BuildOverrides& plan,
                    std::vector<std::string>& assumptions) {
  PreferenceReference reference;
  reference.kind = job.training.reference;
  if (reference.kind == Reference::kDisabledAdapter && !job.training.lora) {
    throw Error(ErrorKind::kInput,
                "training.preference.reference is \"disabled-adapter\", but the job has no "
                "training.lora to disable; use \"model\" or \"precomputed\"");
  }
  if (reference.kind == Reference::kModel) {
    reference.module = session.ledger().add_module("reference");
    const Scoped<ModuleIndex> module(session.module, reference.module);
    TrainingSpec frozen = job.training;
    frozen.lora.reset();
    BuildOptions options = build_options(frozen, std::nullopt, plan);
    options.train = TrainableSubset::kFrozen;
    built.reference = std::make_unique<Builder>(session, std::move(options));
    reference.network =
        make_network(*built.reference, job.model, model_settings(frozen, job, plan), assumptions);
    built.reference->finish();
  }
  built.network =
      std::make_unique<PreferenceNetwork>(session, std::move(built.network), std::move(reference));
}

}  // namespace

std::span<const std::string_view> loop_keys() { return kLoopKeys; }

std::optional<DType> autocast_of(const TrainingSpec& training) {
  if (training.precision.autocast) return training.precision.autocast;
  const DType base = training.precision.parameters;
  const bool mixed = training.lora && !training.lora->precision && is_16bit_float(base);
  return mixed && training.mode == Mode::kTrain ? std::optional(base) : std::nullopt;
}

std::vector<NamedTensor> BuiltModel::parameters() const {
  std::vector<NamedTensor> all;
  std::int64_t blocks = 0;
  const auto add = [&](const Builder& builder) {
    for (NamedTensor parameter : builder.parameters()) {
      if (parameter.block >= 0) parameter.block += blocks;
      all.push_back(std::move(parameter));
    }
    blocks += builder.blocks();
  };
  for (const std::unique_ptr<Builder>& builder : builders) add(*builder);
  if (reference) add(*reference);
  return all;
}

std::vector<Tensor> BuiltModel::trainable() const {
  std::vector<Tensor> all;
  for (const std::unique_ptr<Builder>& builder : builders) {
    const std::vector<Tensor> own = builder->trainable();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::int64_t BuiltModel::parameter_count() const {
  std::int64_t count = 0;
  for (const std::unique_ptr<Builder>& builder : builders) count += builder->parameter_count();
  return count;
}

std::int64_t BuiltModel::layer_count() const {
  std::int64_t count = 0;
  for (const std::unique_ptr<Builder>& builder : builders) {
    // A module makes its parameters one after the other; the same name again is its next
    // repetition.
    std::string_view owner;
    std::string_view first;
    for (const NamedTensor& parameter : builder->parameters()) {
      const std::string_view name = parameter.name;
      const std::string_view now = name.substr(0, name.rfind('.'));
      if (now != owner || name == first) {
        ++count;
        owner = now;
        first = name;
      }
    }
  }
  return count;
}

BuiltModel build_model(Session& session, const Job& job, const BuildOverrides& plan,
                       std::vector<std::string>& assumptions) {
  if (job.model.modules() != nullptr) return build_modules(session, job, plan, assumptions);
  BuiltModel built;
  BuildOptions options = build_options(job.training, job.model.train(), plan);
  if (is_norm_only_benchmark(job)) options.dtype = DType::kFp32;
  built.network = build_one(built, session, job.model, std::move(options),
                            model_settings(job.training, job, plan), assumptions);
  if (job.training.preference && job.training.mode == Mode::kTrain)
    add_preference(built, session, job, plan, assumptions);
  return built;
}

std::int64_t count_parameters(const Job& job) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  std::vector<std::string> assumptions;
  BuildOverrides plan;
  plan.deferred = true;
  return build_model(session, job, plan, assumptions).parameter_count();
}

}  // namespace memfathom
