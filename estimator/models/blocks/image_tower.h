// ImageTower: the vision transformers of CLIP and SigLIP, alone or in front of a language model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/encoder_layer.h"
#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/settings.h"

namespace memfathom {

// What a tower gives: all its tokens, and the one that stands for the sample.
struct TowerOutput {
  Tensor tokens, pooled;
  Tensor chosen;  // the tokens after the layer that was asked for
};

// The keys that both of CLIP's towers and SigLIP's spell alike.
EncoderConfig read_tower(const Node& config, EncoderConfig defaults, std::string_view activation);

class ImageTower {
 public:
  // `config`: model_type siglip_vision_model, or CLIP's keys.
  ImageTower(Builder& builder, const Node& config, const ModelSettings& settings);

  const EncoderConfig& config() const { return config_; }
  std::int64_t tokens() const { return position_ids_.size(1); }
  std::int64_t patches_per_side() const { return image_.height / patch_; }

  void load(std::int64_t size);

  // `layer` counts as Python's hidden_states do: -1 is the last layer's, -2 the one before. Images
  // that no layer is asked of leave `chosen` empty.
  TowerOutput operator()(std::optional<std::int64_t> layer = {}) const;

 private:
  // SigLIP's: one question asked of all tokens, and a feed-forward part.
  struct PoolingHead {
    Tensor probe, in_weight, in_bias;
    Linear output, first, second;
    LayerNorm norm;
  };

  Tensor embedded() const;
  Tensor pooled(const Tensor& tokens) const;
  Tensor asked(const Tensor& probe, const Tensor& tokens) const;
  void make_pooling_head(Builder& builder);

  Session& session_;
  ModelSettings settings_;
  EncoderConfig config_;
  bool siglip_ = false;
  ConfigExtent image_;
  std::int64_t channels_ = 3, patch_ = 16;
  Tensor class_, position_table_, position_ids_;
  Layer patches_;
  std::vector<EncoderLayer> layers_;
  LayerNorm first_norm_, last_norm_;
  std::optional<PoolingHead> head_;
  Tensor image_tensor_;
};

}  // namespace memfathom
