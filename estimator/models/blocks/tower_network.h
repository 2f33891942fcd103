// TowerNetwork: a text or image tower by itself, as diffusion and vision-language models use them.
#pragma once

#include "core/document.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// Its result is its tokens, or their projection where there is one.
template <typename Tower>
class TowerNetwork final : public Network {
 public:
  // `projection`: how wide it is; 0: none.
  TowerNetwork(Builder& builder, const ModelSettings& settings, Tower tower,
               std::int64_t projection = 0)
      : session_(builder.session()), settings_(settings), tower_(std::move(tower)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMean;
    if (projection == 0) return;
    const HeadScope head(builder);
    projection_ = make_linear(builder, "projection", tower_.config().hidden, projection,
                              {.bias = false, .head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&target_});
    tower_.load(size);
    if (!targets) return;
    const Shape shape = projection_.weight ? Shape{size, projection_.weight.size(0)}
                                           : Shape{size, tower_.tokens(), tower_.config().hidden};
    target_ = make_target(session_, settings_.loss, shape, settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    const Tensor result = forward();
    if (output != nullptr) *output = result;
    return apply_loss(settings_.loss, result, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    const TowerOutput seen = tower_();
    return projection_.weight ? projection_(seen.pooled) : seen.tokens;
  }

 private:
  Session& session_;
  ModelSettings settings_;
  Tower tower_;
  Linear projection_;
  Tensor target_;
};

}  // namespace memfathom
