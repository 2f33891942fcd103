// Job: what is to be run, on what: docs/contract.md §3 as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/dtype.h"
#include "core/enum_names.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/model_spec.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/framework/optim/optimizer.h"

namespace memfathom {

enum class Mode : std::uint8_t { kTrain, kInference, kGenerate };
enum class Lengths : std::uint8_t { kFixed, kVarying };
enum class Reference : std::uint8_t { kNone, kPrecomputed, kModel, kDisabledAdapter };
enum class Fsdp : std::uint8_t { kNone, kFull, kHybrid };
enum class Backend : std::uint8_t { kCaching, kNone };

// The words of docs/contract.md §3.
template <>
inline constexpr auto kEnumNames<Mode> = std::to_array<EnumName<Mode>>(
    {{Mode::kTrain, "train"}, {Mode::kInference, "inference"}, {Mode::kGenerate, "generate"}});
template <>
inline constexpr auto kEnumNames<Lengths> =
    std::to_array<EnumName<Lengths>>({{Lengths::kFixed, "fixed"}, {Lengths::kVarying, "varying"}});
template <>
inline constexpr auto kEnumNames<Reference> =
    std::to_array<EnumName<Reference>>({{Reference::kNone, "none"},
                                        {Reference::kPrecomputed, "precomputed"},
                                        {Reference::kModel, "model"},
                                        {Reference::kDisabledAdapter, "disabled-adapter"}});
template <>
inline constexpr auto kEnumNames<Fsdp> = std::to_array<EnumName<Fsdp>>({{Fsdp::kNone, "none"},
                                                                        {Fsdp::kFull, "full"},
                                                                        {Fsdp::kHybrid, "hybrid"}});
template <>
inline constexpr auto kEnumNames<Backend> =
    std::to_array<EnumName<Backend>>({{Backend::kCaching, "caching"}, {Backend::kNone, "none"}});

// fp32, bf16, fp16: parameters in that type. amp-*: fp32 parameters under autocast.
struct Precision {
  DType parameters = DType::kFp32;
  std::optional<DType> autocast;
};

struct LoraSpec {
  std::int64_t rank = 8;
  std::vector<std::string> targets;  // last part of a linear's name, or "all-linear"
  std::optional<double> dropout;     // absent: none, or what the library's recipe has
  std::optional<DType> precision;    // absent: PEFT's fp32, under autocast on a 16-bit base
};

struct TrainingSpec {
  Mode mode = Mode::kTrain;
  std::int64_t batch_size = 1;
  Precision precision;
  OptimizerOptions optimizer;                   // its form is the framework's default
  std::optional<OptimizerForm> optimizer_form;  // the job's own
  bool trainer_optimizer = false;               // its form is the default of transformers' Trainer
  std::int64_t accumulation_steps = 1;
  std::optional<LoraSpec> lora;
  Quantization quantization = Quantization::kNone;
  PackedWeights packed;
  bool preference = false;  // DPO: two sequences per sample
  Reference reference = Reference::kNone;
  std::optional<std::int64_t> samples_per_epoch;
  bool drop_last = true;
  bool warmup_forward = false;
  std::int64_t evaluation_batch = 0;  // samples of an evaluation pass between iterations; 0: none
  bool cudnn_benchmark = false;
  bool compiled = false;         // torch.compile: said, not modelled
  bool paged_optimizer = false;  // its states may leave the GPU: said, not modelled
  bool gradient_clipping = false;
  std::optional<ZeroGrad> zero_grad;  // absent: as the framework's release has it
  std::optional<Lengths> lengths;     // absent: fixed, which the answer then says
  bool grad_scaler = false;
  bool hold_output = false;
  std::optional<bool> retain_graph;  // absent: as the kind of job has it (run/layer_benchmark.h)
  std::optional<bool> use_cache;
  std::optional<KvCache> kv_cache;  // absent: as transformers' release has it
  // What a network is told of the keys above. Its precision and caches are filled in from them when
  // the model is built (job_model/built_model.h).
  ModelSettings settings;

  // The optimizer as it runs: the job's own form over the default. PyTorch's Adafactor loops over
  // the parameters unless foreach is asked for.
  OptimizerOptions optimizer_options() const {
    OptimizerOptions options = optimizer;
    const bool loops = optimizer.name == OptimizerName::kAdafactor;
    options.form = optimizer_form.value_or(loops ? OptimizerForm::kForLoop : optimizer.form);
    return options;
  }
};

struct ZeroBuffers {
  std::int64_t reduce_bucket_size = 500000000;  // elements, DeepSpeed's defaults
  std::int64_t allgather_bucket_size = 500000000;
  std::optional<bool> overlap_comm;
  std::int64_t max_live_parameters = 1000000000;
  std::int64_t prefetch_bucket_size = 50000000;
};

struct ParallelSpec {
  std::int64_t num_gpus = 1;
  std::int64_t gpus_per_node = 8;  // that share a host's memory
  int zero_stage = 0;
  Fsdp fsdp = Fsdp::kNone;
  int fsdp_version = 1;
  // FSDP 1 lets no more than two all-gathers be on their way; absent: as its PyTorch has it.
  std::optional<bool> limit_all_gathers;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  bool offload_parameters = false;
  bool offload_optimizer = false;
  bool offload_activations = false;
  std::optional<DType> reduce_precision;
  ZeroBuffers zero;
  bool gradient_as_bucket_view = false;
  bool sequence_parallel = false;
};

struct AllocatorSpec {
  Backend backend = Backend::kCaching;
  std::string options;
};

struct StackSpec {
  std::string framework, version, cuda, cudnn, transformers, peft, bitsandbytes;
  ModelLibrary library = ModelLibrary::kTransformers;
};

struct TargetSpec {
  std::string gpu;  // a name of `memfathom gpus`
  std::optional<Bytes> memory;
  int compute_capability = 0;  // of a GPU that no table names; 0: not said
  std::string device;          // cuda:0
  Bytes used_by_others;
  std::optional<Bytes> host_memory;  // of one node, that the job may use
  std::optional<Bytes> margin_bytes;
  double margin_fraction = 0;
  std::string calibration = "auto";
  StackSpec stack;
};

struct Job {
  std::string id;
  ModelSpec model;
  TrainingSpec training;
  ParallelSpec parallel;
  AllocatorSpec allocator;
  TargetSpec target;
};

}  // namespace memfathom
