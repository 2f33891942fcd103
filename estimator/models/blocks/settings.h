// ModelSettings: how a model is run: extents of the inputs, attention, checkpointing, loss; the
// parts of a job a network sees.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "core/enum_names.h"
#include "estimator/models/blocks/transformers_policy.h"
#include "kernels/framework/ops/attention.h"

namespace memfathom {

class BlockAdapters;

// Parts of a model that reads images; those that the job freezes.
struct FrozenParts {
  bool vision = false, projector = false, language = false;
};

enum class Checkpointing : std::uint8_t { kNone, kFull, kSelective };
enum class KvCache : std::uint8_t { kDynamic, kStatic, kTuple };
enum class LossKind : std::uint8_t {
  kModel,
  kCrossEntropy,
  kBinaryCrossEntropy,
  kBinaryCrossEntropyWithLogits,
  kMse,
  kL1,
  kSmoothL1,
  kSum,
  kMean,
  kNone,
  kSink,
};

// Which part of a model split into pipeline stages: the first has the embedding, the last the head.
enum class PipelineStage : std::uint8_t { kWhole, kFirst, kLast };

// Whose code runs a language model's config.
enum class ModelLibrary : std::uint8_t { kTransformers, kLitgpt };

// Which part of an autoencoder runs; its parameters are there in any case.
enum class ModelPart : std::uint8_t { kWhole, kEncoder, kDecoder };

// The words of docs/contract.md §3.
template <>
inline constexpr auto kEnumNames<Checkpointing> =
    std::to_array<EnumName<Checkpointing>>({{Checkpointing::kNone, "none"},
                                            {Checkpointing::kFull, "full"},
                                            {Checkpointing::kSelective, "selective"}});
template <>
inline constexpr auto kEnumNames<KvCache> = std::to_array<EnumName<KvCache>>(
    {{KvCache::kDynamic, "dynamic"}, {KvCache::kStatic, "static"}, {KvCache::kTuple, "tuple"}});
template <>
inline constexpr auto kEnumNames<ModelLibrary> = std::to_array<EnumName<ModelLibrary>>(
    {{ModelLibrary::kTransformers, "transformers"}, {ModelLibrary::kLitgpt, "litgpt"}});
template <>
inline constexpr auto kEnumNames<ModelPart> =
    std::to_array<EnumName<ModelPart>>({{ModelPart::kWhole, "whole"},
                                        {ModelPart::kEncoder, "encoder"},
                                        {ModelPart::kDecoder, "decoder"}});

struct ModelSettings {
  std::int64_t sequence_length = 0;  // 0: not given; a model that needs it says so
  std::int64_t target_sequence_length =
      0;  // decoder's, for encoder-decoder models; 0: the encoder's
  std::int64_t image_height = 0, image_width = 0;
  std::int64_t num_frames = 0;
  std::optional<std::int64_t> num_images;  // images of a sample; absent: as the family is used
  std::int64_t new_tokens = 0;
  DType precision = DType::kFp32;  // of parameters and float inputs
  AttentionImplementation attention = AttentionImplementation::kAuto;
  Checkpointing checkpointing = Checkpointing::kNone;
  bool checkpoint_reentrant = false;
  std::optional<double> dropout;  // overrides the model's own everywhere
  LossKind loss = LossKind::kModel;
  double label_smoothing = 0;
  bool runs_body_alone = false;  // a configuration that names no head has none: not in training
  bool use_cache = false;        // a training or plain forward that builds the key-value cache
  bool padding_mask = false;
  std::int64_t logits_to_keep = 0;  // 0: all positions
  bool channels_last = false;
  PipelineStage stage = PipelineStage::kWhole;
  ModelPart part = ModelPart::kWhole;
  FrozenParts frozen;
  std::int64_t sequence_shards = 1;  // GPUs that share the positions between matrix products
  bool fused_loss = false;           // the logits are never materialised
  KvCache kv_cache = KvCache::kDynamic;
  std::shared_ptr<BlockAdapters> adapters;  // after each block, where the job wants them
  ModelLibrary library = ModelLibrary::kTransformers;
  TransformersPolicy transformers;
};

// Whether the script makes the loss from what the model returns, which then has a name in the
// script: `outputs = model(...)`.
inline bool loss_is_in_script(const ModelSettings& settings) {
  return settings.loss != LossKind::kModel && settings.loss != LossKind::kCrossEntropy;
}

}  // namespace memfathom
