// VGGT: a DINOv2 backbone, 24 pairs of frame and global attention blocks, and heads for camera,
// depth and points.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// num_frames views of image_size (518, a multiple of 14) per sample. The track head is left out,
// since training and reconstruction without query points never run it; the losses are plain L1
// distances.
std::unique_ptr<Network> make_vggt(Builder& builder, const Node& model,
                                   const ModelSettings& settings);

}  // namespace memfathom
