// Losses of whole models: what follows the network's output in a training script.
#pragma once

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// The target tensor that `loss` compares an output of this shape with; undefined when it needs
// none. Class indices are int64: [batch] for [batch, classes], [batch, spatial...] for [batch,
// classes, spatial...].
Tensor make_target(Session& session, LossKind loss, const Shape& output, DType output_type);

// The loss of an output. kSink is what the oracle's layers end in; kNone hands a resident gradient
// to backward.
Tensor apply_loss(LossKind loss, const Tensor& output, const Tensor& target,
                  double label_smoothing);

LossKind parse_loss(const Node& node);

}  // namespace memfathom
