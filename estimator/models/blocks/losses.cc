#include "estimator/models/blocks/losses.h"

#include <array>
#include <string_view>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

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
    case LossKind::kModel:
    case LossKind::kSum:
    case LossKind::kMean:
    case LossKind::kNone:
    case LossKind::kSink: break;
  }
  return {};
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
    case LossKind::kBinaryCrossEntropy: return pair_loss(PairLoss::kBce, output, target);
    case LossKind::kBinaryCrossEntropyWithLogits:
      return pair_loss(PairLoss::kBceWithLogits, output, target);
    case LossKind::kMse: return pair_loss(PairLoss::kMse, output, target);
    case LossKind::kL1: return pair_loss(PairLoss::kL1, output, target);
    case LossKind::kSmoothL1: return pair_loss(PairLoss::kSmoothL1, output, target);
    case LossKind::kModel:
    case LossKind::kNone: break;
  }
  throw Error(ErrorKind::kInternal, "a loss of unknown kind was applied");
}

LossKind parse_loss(const Node& node) {
  // All but kModel, which is what a job has that names none.
  static constexpr auto kLosses = std::to_array<EnumName<LossKind>>(
      {{LossKind::kCrossEntropy, "cross_entropy"},
       {LossKind::kBinaryCrossEntropy, "binary_cross_entropy"},
       {LossKind::kBinaryCrossEntropyWithLogits, "binary_cross_entropy_with_logits"},
       {LossKind::kMse, "mse"},
       {LossKind::kL1, "l1"},
       {LossKind::kSmoothL1, "smooth_l1"},
       {LossKind::kSum, "sum"},
       {LossKind::kMean, "mean"},
       {LossKind::kNone, "none"},
       {LossKind::kSink, "sink"}});
  static_assert(!enum_detail::is_enumerator<static_cast<LossKind>(kLosses.size() + 1)>(),
                "every loss but kModel has a name");
  static constexpr auto kNames = [] {
    std::array<std::string_view, kLosses.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kLosses[i].name;
    return names;
  }();
  return kLosses[node.as_choice(kNames)].value;
}

}  // namespace memfathom
