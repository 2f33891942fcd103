// Grid families: networks over images, videos and fields (classifiers, diffusion, operators), by
// preset name or by the model_type / _class_name of a config.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// The model that `config` describes; nullptr when its model_type or _class_name is none of ours.
std::unique_ptr<Network> make_grid_model(Builder& builder, const Node& config,
                                         const ModelSettings& settings);

// Whether `config` is that of a network that turns images or videos into latents and back.
bool is_autoencoder(const Node& config);

// A preset by its normalized name; `model` is the job's, for num_classes. nullptr when it is none
// of ours.
std::unique_ptr<Network> make_grid_preset(Builder& builder, std::string_view normalized_name,
                                          const Node& model, const ModelSettings& settings);

struct GridPreset {
  std::string_view name;
  std::int64_t parameters;
  std::string_view description;
};

std::span<const GridPreset> grid_presets();

}  // namespace memfathom
