#include "estimator/models/families/diffusion/autoencoder.h"

#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/autoencoder_network.h"
#include "estimator/models/blocks/unet_blocks.h"
#include "estimator/models/blocks/config_reader.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

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

class Autoencoder final : public AutoencoderNetwork {
 public:
  Autoencoder(Builder& builder, const Node& config, const ModelSettings& given)
      : AutoencoderNetwork(builder.session(), given), plan_(read_plan(config)) {
    const std::int64_t sample = count_or(config, {"sample_size"}, 32);
    height_ = settings().image_height > 0 ? settings().image_height : sample;
    width_ = settings().image_width > 0 ? settings().image_width : sample;
    check_sides(config, height_, width_, plan_.compression());
    const ImageContext context{builder, settings()};
    encoder_ = make_encoder(context, plan_);
    decoder_ = make_decoder(context, plan_);
    const auto conv1 = [&](std::string_view name, std::int64_t width) {
      return conv_layer(context, name, {.in = width, .out = width, .kernel = 1, .bias = true});
    };
    if (plan_.encoded_by_conv) quantize_ = conv1("quant_conv", 2 * plan_.latents);
    if (plan_.decoded_by_conv) dequantize_ = conv1("post_quant_conv", plan_.latents);
  }

 private:
  Shape samples(std::int64_t size) const override {
    return {size, plan_.in_channels, height_, width_};
  }
  Shape latents(std::int64_t size) const override {
    const std::int64_t factor = plan_.compression();
    return {size, plan_.latents, height_ / factor, width_ / factor};
  }

  Tensor moments(const Tensor& samples) const override {
    Tensor made = encoder_(settings(), samples);
    if (quantize_) made = quantize_(made);
    return made;
  }
  Tensor decoded(const Tensor& latents) const override {
    const Tensor z = dequantize_ ? dequantize_(latents) : latents;
    return decoder_(settings(), z);
  }

  Plan plan_;
  std::int64_t height_ = 0, width_ = 0;
  Half encoder_, decoder_;
  Layer quantize_, dequantize_;
};

}  // namespace

std::unique_ptr<Network> make_autoencoder(Builder& builder, const Node& config,
                                          const ModelSettings& settings) {
  return std::make_unique<Autoencoder>(builder, config, settings);
}

}  // namespace memfathom
