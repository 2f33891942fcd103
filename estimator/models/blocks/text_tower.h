// TextTower: the text encoders of CLIP and SigLIP, alone or beside an image tower.
#pragma once

#include <cstdint>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/encoder_layer.h"
#include "estimator/models/blocks/image_tower.h"
#include "estimator/models/blocks/settings.h"

namespace memfathom {

enum class TextTowerKind : std::uint8_t { kClip, kSiglip };

class TextTower {
 public:
  TextTower(Builder& builder, const Node& config, const ModelSettings& settings,
            TextTowerKind kind = TextTowerKind::kClip);

  const EncoderConfig& config() const { return config_; }
  std::int64_t tokens() const;
  // Of what stands for a sample.
  std::int64_t width() const { return head_.bias ? head_.bias.size(0) : config_.hidden; }

  void load(std::int64_t size);
  TowerOutput operator()() const;

 private:
  Tensor embedded() const;
  Tensor end_token(const Tensor& tokens) const;

  Session& session_;
  ModelSettings settings_;
  EncoderConfig config_;
  std::int64_t positions_ = 0;
  Tensor words_, position_table_, position_ids_;
  std::vector<EncoderLayer> layers_;
  LayerNorm norm_;
  Linear head_;  // SigLIP's, over the last token
  Tensor ids_, padding_;
};

}  // namespace memfathom
