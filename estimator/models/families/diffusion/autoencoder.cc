// Autoencoder: diffusers' AutoencoderKL, which turns images into latents and back.
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/autoencoder_network.h"
#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/unet_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxLevels = 16;

struct AutoencoderConfig {
  std::vector<std::int64_t> channels;
  std::int64_t in_channels = 3, out_channels = 3, latents = 4, layers = 1;
  bool encoded_by_conv = true, decoded_by_conv = true, mid_attention = true;
  UNetStyle style;

  // Pixels to a side of one latent.
  std::int64_t compression() const { return std::int64_t{1} << (channels.size() - 1); }
};

AutoencoderConfig read_config(const Node& config) {
  AutoencoderConfig cfg;
  const Node* channels = find_any(config, {"block_out_channels"});
  cfg.channels =
      channels != nullptr ? channels->as_ints(1, kMaxWidth) : std::vector<std::int64_t>{64};
  if (cfg.channels.empty() || cfg.channels.size() > kMaxLevels)
    config.at("block_out_channels").refuse("it must name the channels of 1 to 16 levels");
  cfg.in_channels = count_or(config, {"in_channels"}, 3);
  cfg.out_channels = count_or(config, {"out_channels"}, 3);
  cfg.latents = count_or(config, {"latent_channels"}, 4);
  cfg.layers = count_or(config, {"layers_per_block"}, 1, kMaxLayers);
  cfg.encoded_by_conv = flag_or(config, {"use_quant_conv"}, true);
  cfg.decoded_by_conv = flag_or(config, {"use_post_quant_conv"}, true);
  cfg.mid_attention = flag_or(config, {"mid_block_add_attention"}, true);
  cfg.style.groups = count_or(config, {"norm_num_groups"}, 32);
  cfg.style.eps = 1e-6;
  cfg.style.activation = activation_or(config, {"act_fn"}, "silu");
  for (const std::int64_t width : cfg.channels) {
    require_divides(config, {"norm_num_groups"}, cfg.style.groups, width, "block_out_channels");
  }
  return cfg;
}

Layer conv3(const ImageContext& context, std::string_view name, std::int64_t in, std::int64_t out) {
  return conv_layer(context, name, {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = true});
}

// Residual blocks one after the other, then the change of size where there is one.
struct AutoencoderStage {
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

void add_resnets(const ImageContext& context, const AutoencoderConfig& cfg, AutoencoderStage& stage,
                 std::int64_t count, std::int64_t in, std::int64_t out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const PathScope scope(context.builder, "resnets", i);
    stage.resnets.push_back(make_resnet_block(context, cfg.style, i == 0 ? in : out, out));
  }
}

AutoencoderStage make_middle(const ImageContext& context, const AutoencoderConfig& cfg) {
  const PathScope scope(context.builder, "mid_block");
  const std::int64_t width = cfg.channels.back();
  AutoencoderStage stage;
  if (cfg.mid_attention) {
    const PathScope attention(context.builder, "attentions", 0);
    stage.attention = make_image_attention(context, cfg.style, width, 1);
  }
  add_resnets(context, cfg, stage, 2, width, width);
  return stage;
}

// An encoder or a decoder: a convolution, stages, norm, activation, a convolution.
struct AutoencoderHalf {
  Layer first, last;
  std::vector<std::shared_ptr<const AutoencoderStage>> stages;
  GroupNorm norm;
  Activation activation = Activation::kSilu;

  Tensor operator()(const ModelSettings& settings, const Tensor& input) const {
    Tensor x = first(input);
    for (const std::shared_ptr<const AutoencoderStage>& stage : stages) {
      x = run_checkpointed(
          settings, [stage](const Tensor& hidden) { return (*stage)(hidden); }, x);
    }
    x = norm(x);
    x = activate(activation, x);
    return last(x);
  }
};

AutoencoderHalf make_encoder(const ImageContext& context, const AutoencoderConfig& cfg) {
  const PathScope scope(context.builder, "encoder");
  AutoencoderHalf half;
  half.activation = cfg.style.activation;
  half.first = conv3(context, "conv_in", cfg.in_channels, cfg.channels.front());
  std::int64_t in = cfg.channels.front();
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    const PathScope block(context.builder, "down_blocks", static_cast<std::int64_t>(i));
    AutoencoderStage stage;
    add_resnets(context, cfg, stage, cfg.layers, in, cfg.channels[i]);
    in = cfg.channels[i];
    if (i + 1 < cfg.channels.size()) stage.resample = make_downsample(context, in, 0);
    half.stages.push_back(std::make_shared<const AutoencoderStage>(std::move(stage)));
  }
  half.stages.push_back(std::make_shared<const AutoencoderStage>(make_middle(context, cfg)));
  half.norm = make_group_norm(context.builder, "conv_norm_out", cfg.style.groups, in);
  half.last = conv3(context, "conv_out", in, 2 * cfg.latents);
  return half;
}

AutoencoderHalf make_decoder(const ImageContext& context, const AutoencoderConfig& cfg) {
  const PathScope scope(context.builder, "decoder");
  AutoencoderHalf half;
  half.activation = cfg.style.activation;
  std::int64_t in = cfg.channels.back();
  half.first = conv3(context, "conv_in", cfg.latents, in);
  half.stages.push_back(std::make_shared<const AutoencoderStage>(make_middle(context, cfg)));
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    const PathScope block(context.builder, "up_blocks", static_cast<std::int64_t>(i));
    const std::int64_t out = cfg.channels[cfg.channels.size() - 1 - i];
    AutoencoderStage stage;
    add_resnets(context, cfg, stage, cfg.layers + 1, in, out);
    if (i + 1 < cfg.channels.size()) stage.resample = make_upsample(context, out);
    half.stages.push_back(std::make_shared<const AutoencoderStage>(std::move(stage)));
    in = out;
  }
  half.norm = make_group_norm(context.builder, "conv_norm_out", cfg.style.groups, in);
  const HeadScope head(context.builder);
  half.last = conv3(context, "conv_out", in, cfg.out_channels);
  return half;
}

class Autoencoder final : public AutoencoderNetwork {
 public:
  Autoencoder(Builder& builder, const Node& config, const ModelSettings& given)
      : AutoencoderNetwork(builder.session(), given), config_(read_config(config)) {
    const std::int64_t sample = count_or(config, {"sample_size"}, 32);
    height_ = settings().image_height > 0 ? settings().image_height : sample;
    width_ = settings().image_width > 0 ? settings().image_width : sample;
    check_sides(config, height_, width_, config_.compression());
    const ImageContext context{builder, settings()};
    encoder_ = make_encoder(context, config_);
    decoder_ = make_decoder(context, config_);
    const auto conv1 = [&](std::string_view name, std::int64_t width) {
      return conv_layer(context, name, {.in = width, .out = width, .kernel = 1, .bias = true});
    };
    if (config_.encoded_by_conv) quantize_ = conv1("quant_conv", 2 * config_.latents);
    if (config_.decoded_by_conv) dequantize_ = conv1("post_quant_conv", config_.latents);
  }

 private:
  Shape samples(std::int64_t size) const override {
    return {size, config_.in_channels, height_, width_};
  }
  Shape latents(std::int64_t size) const override {
    const std::int64_t factor = config_.compression();
    return {size, config_.latents, height_ / factor, width_ / factor};
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

  AutoencoderConfig config_;
  std::int64_t height_ = 0, width_ = 0;
  AutoencoderHalf encoder_, decoder_;
  Layer quantize_, dequantize_;
};

}  // namespace

// The whole of it is trained to give its input back; `model.part` runs only the encoder (as the
// training of a diffusion model does) or the decoder. image_size is the image's.
std::unique_ptr<Network> make_autoencoder(Builder& builder, const Node& config,
                                          const ModelSettings& settings) {
  return std::make_unique<Autoencoder>(builder, config, settings);
}

}  // namespace memfathom
