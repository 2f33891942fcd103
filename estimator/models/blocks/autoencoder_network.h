// AutoencoderNetwork: what the autoencoders of images and of videos share around their two halves.
#pragma once

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

// Runs the whole or the part that the settings name. The loss is the mean squared error unless the
// job says otherwise; the whole is held against its own input.
class AutoencoderNetwork : public Network {
 public:
  void load_batch(std::int64_t size, bool targets) final;
  Tensor loss(Tensor* output) final;
  Tensor forward() final;

 protected:
  AutoencoderNetwork(Session& session, const ModelSettings& settings);

  const ModelSettings& settings() const { return settings_; }

 private:
  virtual Shape samples(std::int64_t size) const = 0;
  virtual Shape latents(std::int64_t size) const = 0;
  // Mean and logarithm of the variance, one after the other along the channels.
  virtual Tensor moments(const Tensor& samples) const = 0;
  virtual Tensor decoded(const Tensor& latents) const = 0;

  Tensor encoded() const;

  Session& session_;
  ModelSettings settings_;
  Tensor x_, target_;
};

// Refuses sides that are no multiple of `compression`, the pixels to a side of one latent.
void check_sides(const Node& config, std::int64_t height, std::int64_t width,
                 std::int64_t compression);

}  // namespace memfathom
