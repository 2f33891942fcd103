// ModelFamily: a row of the registry (estimator/models/registry.h): how models of one family are
// built, and what the rest of the program needs to know about them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/document.h"
#include "core/version.h"
#include "estimator/models/blocks/image_source.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

enum class ModelKind : std::uint8_t {
  kLanguage,    // transformers' text models
  kVision,      // image models
  kAudio,       // transformers' models of recordings
  kDiffusion,   // diffusers' models, which are named by _class_name instead of model_type
  kMultimodal,  // a language model that reads images
  kBuiltin,     // memfathom's own: docs/models.md
};

// What an autoencoder turns into latents and back.
enum class AutoencoderInput : std::uint8_t { kNone, kImages, kVideos };

// The number of tokens that a model has positions for.
struct PositionLimit {
  std::string_view key = "max_position_embeddings";  // of the configuration
  std::int64_t reserved = 0;                         // positions that no token can have
  bool is_table = false;  // an embedding of positions: the library refuses longer samples
};

// The modules that PEFT adapts when none are named, mostly queries and values; where PEFT has no
// default for a family, those under the family's names. "": no more.
using LoraTargets = std::array<std::string_view, 4>;

struct FamilyTraits {
  Version since;  // first release of the library that has it; unset: older than all imitated
  LoraTargets lora_targets{"q_proj", "v_proj"};
  PositionLimit positions;
  bool is_classifier = false;        // `num_classes` of the job is a key of its configuration
  bool has_own_head_only = false;    // whatever else `architectures` names is not modelled
  bool has_tensor_parallel = false;  // parallel.tensor can split it
};

using ModelMaker = std::unique_ptr<Network>(Builder& builder, const Node& config,
                                            const ModelSettings& settings);

// `config` is the whole model's, `hidden` the language model's width.
using ImageSourceMaker = std::unique_ptr<ImageSource>(Builder& builder, const Node& config,
                                                      std::int64_t hidden,
                                                      const ModelSettings& settings);

// How a multimodal family reads images; its language model is one of the Llama variants.
struct ImageTraits {
  ImageSourceMaker* make = nullptr;
  bool (*can_read)(const Node& config) = nullptr;  // whether the tower is known; nullptr: always
  std::int64_t usual_count = 1;                    // images of a sample, unless the job says
  bool any_size = false;                           // 448 x 448 unless the job says
};

struct ModelFamily {
  std::string_view name;  // model_type, or diffusers' _class_name
  ModelKind kind = ModelKind::kLanguage;
  ModelMaker* make = nullptr;  // of every kind but kMultimodal
  FamilyTraits traits;
  AutoencoderInput autoencoder = AutoencoderInput::kNone;
  ImageTraits images;
};

}  // namespace memfathom
