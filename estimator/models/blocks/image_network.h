// ImageNetwork: a network from one tensor of samples to one tensor, with a loss against targets.
#pragma once

#include <memory>

#include "estimator/models/blocks/layer.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

struct ImageTask {
  Shape sample;                             // extents of one input sample, without the batch
  Shape output;                             // extents of one output sample
  LossKind loss = LossKind::kCrossEntropy;  // unless the job names another
};

std::unique_ptr<Network> make_image_network(Session& session, const ModelSettings& settings,
                                            Layer model, ImageTask task);

}  // namespace memfathom
