#include "estimator/models/blocks/autoencoder_network.h"

#include <fmt/format.h>

#include <vector>

#include "estimator/models/blocks/losses.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

AutoencoderNetwork::AutoencoderNetwork(Session& session, const ModelSettings& settings)
    : session_(session), settings_(settings) {
  if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
}

void AutoencoderNetwork::load_batch(std::int64_t size, bool targets) {
  const BatchScope scope(session_, {&x_, &target_});
  const bool decodes = settings_.part == ModelPart::kDecoder;
  const bool encodes = settings_.part == ModelPart::kEncoder;
  x_ = session_.zeros(decodes ? latents(size) : samples(size), settings_.precision);
  if (targets && settings_.part != ModelPart::kWhole)
    target_ = make_target(session_, settings_.loss, encodes ? latents(size) : samples(size),
                          settings_.precision);
}

Tensor AutoencoderNetwork::loss(Tensor* output) {
  const Tensor y = forward();
  if (output != nullptr) *output = y;
  return apply_loss(settings_.loss, y, target_ ? target_ : x_, settings_.label_smoothing);
}

Tensor AutoencoderNetwork::forward() {
  if (settings_.part == ModelPart::kDecoder) return decoded(x_);
  const Tensor sample = encoded();
  return settings_.part == ModelPart::kEncoder ? sample : decoded(sample);
}

// A sample of the distribution that the encoder gives.
Tensor AutoencoderNetwork::encoded() const {
  const Tensor distribution = moments(x_);
  const std::vector<Tensor> parts = chunk(distribution, 2, 1);
  const Tensor clamped = mul_scalar(parts[1], 1);
  Tensor deviation = mul_scalar(clamped, 0.5);
  deviation = exp(deviation);
  const Tensor variance = exp(clamped);
  const Tensor noise = session_.full(parts[0].shape(), distribution.dtype(), 0);
  const Tensor scaled = mul(deviation, noise);
  return add(parts[0], scaled);
}

void check_sides(const Node& config, std::int64_t height, std::int64_t width,
                 std::int64_t compression) {
  if (height % compression == 0 && width % compression == 0) return;
  config.refuse(fmt::format(
      "training.image_size must be a multiple of {}, the pixels of one latent", compression));
}

}  // namespace memfathom
