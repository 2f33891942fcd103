#include "estimator/models/blocks/losses.h"

#include <array>
#include <string_view>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

PairLoss pair_of(LossKind loss) {
  switch (loss) {
    case LossKind::kBinaryCrossEntropy: return PairLoss::kBce;
    case LossKind::kBinaryCrossEntropyWithLogits: return PairLoss::kBceWithLogits;
    case LossKind::kL1: return PairLoss::kL1;
    case LossKind::kSmoothL1: return PairLoss::kSmoothL1;
    default: return PairLoss::kMse;
  }
}

// As if a layer followed: backward begins by making a gradient of the output's shape.
Tensor sink(const Tensor& output) {
  Session& session = output.session();
  Recording tape(session, "Sink", {&output});
  Tensor loss = session.zeros({}, DType::kFp32);
  tape.finish(loss, [shape = output.shape(), dtype = output.dtype()](Backward& b) {
    b.give(0, b.session().zeros(shape, dtype));
  });
  return loss;
}

}  // namespace

Tensor make_target(Session& session, LossKind loss, const Shape& output, DType output_type) {
  const ComponentScope scope(session, Component::kInputs);
  switch (loss) {
    case LossKind::kCrossEntropy: {
      Shape shape;
      for (int i = 0; i < output.rank(); ++i) {
        if (i != 1) shape.push_back(output[i]);
      }
      return session.zeros(shape, DType::kInt64);
    }
    case LossKind::kBinaryCrossEntropy:
    case LossKind::kBinaryCrossEntropyWithLogits:
    case LossKind::kMse:
    case LossKind::kL1:
    case LossKind::kSmoothL1: return session.zeros(output, output_type);
    default: return {};
  }
}

Tensor apply_loss(LossKind loss, const Tensor& output, const Tensor& target,
                  double label_smoothing) {
  Session& session = output.session();
  const ComponentScope scope(session, Component::kLogitsLoss);
  switch (loss) {
    case LossKind::kCrossEntropy: return cross_entropy(output, target, label_smoothing);
    case LossKind::kSum: return sum_all(output);
    case LossKind::kMean: return mean_all(output);
    case LossKind::kSink: return sink(output);
    case LossKind::kModel:
    case LossKind::kNone: throw Error(ErrorKind::kInternal, "a loss was applied that is no loss");
    default: return pair_loss(pair_of(loss), output, target);
  }
}

LossKind parse_loss(const Node& node) {
  static constexpr std::array<std::string_view, 10> kNames{"cross_entropy",
                                                           "binary_cross_entropy",
                                                           "binary_cross_entropy_with_logits",
                                                           "mse",
                                                           "l1",
                                                           "smooth_l1",
                                                           "sum",
                                                           "mean",
                                                           "none",
                                                           "sink"};
  static constexpr std::array<LossKind, 10> kKinds{LossKind::kCrossEntropy,
                                                   LossKind::kBinaryCrossEntropy,
                                                   LossKind::kBinaryCrossEntropyWithLogits,
                                                   LossKind::kMse,
                                                   LossKind::kL1,
                                                   LossKind::kSmoothL1,
                                                   LossKind::kSum,
                                                   LossKind::kMean,
                                                   LossKind::kNone,
                                                   LossKind::kSink};
  return kKinds[node.as_choice(kNames)];
}

}  // namespace memfathom
