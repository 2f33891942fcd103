// Qwen's images: the vision towers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL with their mergers.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/image_source.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"

namespace memfathom {

// `config` is the whole model's. Pictures have the job's image_size.
std::unique_ptr<ImageSource> make_qwen_images(Builder& builder, const Node& config,
                                              const ModelSettings& settings);

}  // namespace memfathom
