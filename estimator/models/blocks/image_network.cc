#include "estimator/models/blocks/image_network.h"

#include <utility>

#include "estimator/models/blocks/losses.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Shape with_batch(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  for (const std::int64_t extent : sample) shape.push_back(extent);
  return shape;
}

class ImageNetwork final : public Network {
 public:
  ImageNetwork(Session& session, const ModelSettings& settings, Layer model, ImageTask task)
      : session_(session), settings_(settings), model_(std::move(model)), task_(task) {
    if (settings.loss != LossKind::kModel) task_.loss = settings.loss;
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&x_, &target_, &gradient_});
    const Shape shape = with_batch(size, task_.sample);
    const bool channels_last = settings_.channels_last && shape.rank() == 4;
    x_ = session_.empty_strided(
        shape, channels_last ? channels_last_strides(shape) : contiguous_strides(shape),
        settings_.precision);
    target_ = targets ? make_target(session_, task_.loss, with_batch(size, task_.output),
                                    settings_.precision)
                      : Tensor();
    if (targets && task_.loss == LossKind::kNone)
      gradient_ = session_.zeros(with_batch(size, task_.output), settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = model_(x_);
    if (output != nullptr) *output = y;
    if (task_.loss == LossKind::kNone) return given_gradient(y);
    return apply_loss(task_.loss, y, target_, settings_.label_smoothing);
  }

  bool script_holds_output() const override { return true; }

  Tensor forward() override { return model_(x_); }

 private:
  // Without a loss backward is handed the resident gradient of the output.
  Tensor given_gradient(const Tensor& y) {
    Recording tape(session_, "GivenGradient", {&y});
    Tensor loss = session_.zeros({}, DType::kFp32);
    tape.finish(loss, [gradient = gradient_.detach()](Backward& b) { b.give(0, gradient); });
    return loss;
  }

  Session& session_;
  ModelSettings settings_;
  Layer model_;
  ImageTask task_;
  Tensor x_, target_, gradient_;
};

}  // namespace

std::unique_ptr<Network> make_image_network(Session& session, const ModelSettings& settings,
                                            Layer model, ImageTask task) {
  return std::make_unique<ImageNetwork>(session, settings, std::move(model), task);
}

}  // namespace memfathom
