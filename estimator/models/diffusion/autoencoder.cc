#include "estimator/models/diffusion/autoencoder.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/checkpointed.h"
#include "estimator/models/diffusion/unet_blocks.h"
#include "estimator/models/language/config_reader.h"
#include "estimator/models/losses.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/views.h"

namespace memfathom {
namespace {

constexpr std::size_t kMostLevels = 16;

struct Plan {
  std::vector<std::int64_t> channels;
  std::int64_t in_channels = 3, out_channels = 3, latents = 4, layers = 1;
  bool encoded_by_conv = true, decoded_by_conv = true, mid_attention = true;
  UNetStyle style;

  // Pixels to a side of one latent.
  std::int64_t compression() const { return std::int64_t{1} << (channels.size() - 1); }
};

Plan read_plan(const Node& config) {
  Plan plan;
  const Node* channels = find_any(config, {"block_out_channels"});
  plan.channels =
      channels != nullptr ? channels->as_ints(1, kMostWidth) : std::vector<std::int64_t>{64};
  if (plan.channels.empty() || plan.channels.size() > kMostLevels)
    config.at("block_out_channels").refuse("it must name the channels of 1 to 16 levels");
  plan.in_channels = count_or(config, {"in_channels"}, 3);
  plan.out_channels = count_or(config, {"out_channels"}, 3);
  plan.latents = count_or(config, {"latent_channels"}, 4);
  plan.layers = count_or(config, {"layers_per_block"}, 1, kMostLayers);
  plan.encoded_by_conv = flag_or(config, {"use_quant_conv"}, true);
  plan.decoded_by_conv = flag_or(config, {"use_post_quant_conv"}, true);
  plan.mid_attention = flag_or(config, {"mid_block_add_attention"}, true);
  plan.style.groups = count_or(config, {"norm_num_groups"}, 32);
  plan.style.eps = 1e-6;
  plan.style.activation = activation_or(config, {"act_fn"}, "silu");
  for (const std::int64_t width : plan.channels) {
    require_divides(config, {"norm_num_groups"}, plan.style.groups, width, "block_out_channels");
  }
  return plan;
}

Layer conv3(const ImageContext& context, std::string_view name, std::int64_t in, std::int64_t out) {
  return conv_layer(context, name, {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = true});
}

// Residual blocks one after the other, then the change of size where there is one.
struct Stage {
  std::vector<std::shared_ptr<const ResnetBlock>> resnets;
  std::optional<DiffusionAttention> attention;  // of the middle: between its two blocks
  Layer resample;

  Tensor operator()(const Tensor& input) const {
    Tensor hidden = input;
    for (std::size_t i = 0; i < resnets.size(); ++i) {
      if (attention && i == 1) hidden = (*attention)(hidden);
      hidden = (*resnets[i])(hidden, {});
    }
    return resample ? resample(hidden) : hidden;
  }
};

void add_resnets(const ImageContext& context, const Plan& plan, Stage& stage, std::int64_t count,
                 std::int64_t in, std::int64_t out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const PathScope scope(context.builder, "resnets", i);
    stage.resnets.push_back(make_resnet_block(context, plan.style, i == 0 ? in : out, out));
  }
}

Stage make_middle(const ImageContext& context, const Plan& plan) {
  const PathScope scope(context.builder, "mid_block");
  const std::int64_t width = plan.channels.back();
  Stage stage;
  if (plan.mid_attention) {
    const PathScope attention(context.builder, "attentions", 0);
    stage.attention = make_image_attention(context, plan.style, width, 1);
  }
  add_resnets(context, plan, stage, 2, width, width);
  return stage;
}

// An encoder or a decoder: a convolution, stages, norm, activation, a convolution.
struct Half {
  Layer first, last;
  std::vector<std::shared_ptr<const Stage>> stages;
  GroupNorm norm;
  Activation activation = Activation::kSilu;

  Tensor operator()(const ModelSettings& settings, const Tensor& input) const {
    Tensor x = first(input);
    for (const std::shared_ptr<const Stage>& stage : stages) {
      x = run_checkpointed(
          settings, [stage](const Tensor& hidden) { return (*stage)(hidden); }, x);
    }
    x = norm(x);
    x = activate(activation, x);
    return last(x);
  }
};

Half make_encoder(const ImageContext& context, const Plan& plan) {
  const PathScope scope(context.builder, "encoder");
  Half half;
  half.activation = plan.style.activation;
  half.first = conv3(context, "conv_in", plan.in_channels, plan.channels.front());
  std::int64_t in = plan.channels.front();
  for (std::size_t i = 0; i < plan.channels.size(); ++i) {
    const PathScope block(context.builder, "down_blocks", static_cast<std::int64_t>(i));
    Stage stage;
    add_resnets(context, plan, stage, plan.layers, in, plan.channels[i]);
    in = plan.channels[i];
    if (i + 1 < plan.channels.size()) stage.resample = make_downsample(context, in, 0);
    half.stages.push_back(std::make_shared<const Stage>(std::move(stage)));
  }
  half.stages.push_back(std::make_shared<const Stage>(make_middle(context, plan)));
  half.norm = make_group_norm(context.builder, "conv_norm_out", plan.style.groups, in);
  half.last = conv3(context, "conv_out", in, 2 * plan.latents);
  return half;
}

Half make_decoder(const ImageContext& context, const Plan& plan) {
  const PathScope scope(context.builder, "decoder");
  Half half;
  half.activation = plan.style.activation;
  std::int64_t in = plan.channels.back();
  half.first = conv3(context, "conv_in", plan.latents, in);
  half.stages.push_back(std::make_shared<const Stage>(make_middle(context, plan)));
  for (std::size_t i = 0; i < plan.channels.size(); ++i) {
    const PathScope block(context.builder, "up_blocks", static_cast<std::int64_t>(i));
    const std::int64_t out = plan.channels[plan.channels.size() - 1 - i];
    Stage stage;
    add_resnets(context, plan, stage, plan.layers + 1, in, out);
    if (i + 1 < plan.channels.size()) stage.resample = make_upsample(context, out);
    half.stages.push_back(std::make_shared<const Stage>(std::move(stage)));
    in = out;
  }
  half.norm = make_group_norm(context.builder, "conv_norm_out", plan.style.groups, in);
  const HeadScope head(context.builder);
  half.last = conv3(context, "conv_out", in, plan.out_channels);
  return half;
}

class Autoencoder final : public Network {
 public:
  Autoencoder(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), plan_(read_plan(config)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    const std::int64_t sample = count_or(config, {"sample_size"}, 32);
    height_ = settings.image_height > 0 ? settings.image_height : sample;
    width_ = settings.image_width > 0 ? settings.image_width : sample;
    if (height_ % plan_.compression() != 0 || width_ % plan_.compression() != 0)
      config.refuse(
          fmt::format("training.image_size must be a multiple of {}, the pixels of one "
                      "latent",
                      plan_.compression()));
    const ImageContext context{builder, settings_};
    encoder_ = make_encoder(context, plan_);
    decoder_ = make_decoder(context, plan_);
    const auto conv1 = [&](std::string_view name, std::int64_t width) {
      return conv_layer(context, name, {.in = width, .out = width, .kernel = 1, .bias = true});
    };
    if (plan_.encoded_by_conv) quantize_ = conv1("quant_conv", 2 * plan_.latents);
    if (plan_.decoded_by_conv) dequantize_ = conv1("post_quant_conv", plan_.latents);
  }

  void load_batch(std::int64_t size, bool targets) override {
    const ComponentScope scope(session_, Component::kInputs);
    const std::int64_t factor = plan_.compression();
    const Shape image{size, plan_.in_channels, height_, width_};
    const Shape latents{size, plan_.latents, height_ / factor, width_ / factor};
    const bool decodes = settings_.part == ModelPart::kDecoder;
    x_ = session_.zeros(decodes ? latents : image, settings_.precision);
    const bool encodes = settings_.part == ModelPart::kEncoder;
    // The whole autoencoder is held against its own input.
    if (targets && settings_.part != ModelPart::kWhole)
      target_ =
          make_target(session_, settings_.loss, encodes ? latents : image, settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_ ? target_ : x_, settings_.label_smoothing);
  }

  Tensor forward() override {
    if (settings_.part == ModelPart::kDecoder) return decoded(x_);
    const Tensor latents = encoded();
    return settings_.part == ModelPart::kEncoder ? latents : decoded(latents);
  }

 private:
  // A sample of the distribution that the encoder gives.
  Tensor encoded() const {
    Tensor moments = encoder_(settings_, x_);
    if (quantize_) moments = quantize_(moments);
    const std::vector<Tensor> parts = chunk(moments, 2, 1);
    const Tensor clamped = mul_scalar(parts[1], 1);
    Tensor deviation = mul_scalar(clamped, 0.5);
    deviation = exp(deviation);
    const Tensor variance = exp(clamped);
    const Tensor noise = session_.full(parts[0].shape(), moments.dtype(), 0);
    const Tensor scaled = mul(deviation, noise);
    return add(parts[0], scaled);
  }

  Tensor decoded(const Tensor& latents) const {
    const Tensor z = dequantize_ ? dequantize_(latents) : latents;
    return decoder_(settings_, z);
  }

  Session& session_;
  ModelSettings settings_;
  Plan plan_;
  std::int64_t height_ = 0, width_ = 0;
  Half encoder_, decoder_;
  Layer quantize_, dequantize_;
  Tensor x_, target_;
};

}  // namespace

std::unique_ptr<Network> make_autoencoder(Builder& builder, const Node& config,
                                          const ModelSettings& settings) {
  return std::make_unique<Autoencoder>(builder, config, settings);
}

}  // namespace memfathom
