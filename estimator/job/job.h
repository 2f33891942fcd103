// Job: what is to be run, on what: docs/contract.md §3 as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "core/dtype.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/framework/optim/optimizer.h"

namespace memfathom {

enum class Mode : std::uint8_t { kTrain, kInference, kGenerate };
enum class Lengths : std::uint8_t { kFixed, kVarying };
enum class Reference : std::uint8_t { kNone, kPrecomputed, kModel, kDisabledAdapter };
enum class Fsdp : std::uint8_t { kNone, kFull, kHybrid };
enum class Backend : std::uint8_t { kCaching, kNone };

// fp32, bf16, fp16: parameters in that type. amp-*: fp32 parameters under autocast.
struct Precision {
  DType parameters = DType::kFp32;
  std::optional<DType> autocast;
};

struct TrainingSpec {
  Mode mode = Mode::kTrain;
  std::int64_t batch_size = 1;
  Precision precision;
  OptimizerOptions optimizer;
  bool optimizer_form_given = false;
  std::int64_t accumulation_steps = 1;
  std::optional<LoraOptions> lora;
  bool lora_precision_given = false, lora_dropout_given = false;
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
  ZeroGrad zero_grad = ZeroGrad::kAfterStep;
  bool zero_grad_given = false;
  std::optional<Lengths> lengths;  // absent: fixed, which the answer then says
  bool grad_scaler = false;
  bool hold_output = false;
  std::optional<bool> retain_graph;  // absent: as the kind of job has it (run/layer_benchmark.h)
  std::optional<bool> use_cache;
  bool kv_cache_given = false;
  ModelSettings settings;  // the part a network sees
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
  std::optional<Bytes> margin_bytes;
  double margin_fraction = 0;
  std::string calibration = "auto";
  StackSpec stack;
};

struct Job {
  std::string id;
  Node model;  // §3's `model`, exactly one way of saying it
  TrainingSpec training;
  ParallelSpec parallel;
  AllocatorSpec allocator;
  TargetSpec target;
};

}  // namespace memfathom
