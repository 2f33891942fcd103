// Video autoencoder: diffusers' AutoencoderKLCogVideoX, which turns videos into latents and back.
#include <utility>
#include <vector>

#include "estimator/models/blocks/autoencoder_network.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/families/diffusion/video_autoencoder/video_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kEncodedFrames = 8;  // at a time
constexpr std::int64_t kDecodedFrames = 2;
constexpr std::size_t kMaxLevels = 16;

struct VideoAutoencoderConfig {
  std::vector<std::int64_t> channels{128, 256, 256, 512};
  std::int64_t in_channels = 3, out_channels = 3, latents = 16, layers = 3, groups = 32;
  std::int64_t time_compression = 4;

  std::int64_t compression() const { return std::int64_t{1} << (channels.size() - 1); }
  // Whether the size change after this level also changes the time.
  bool changes_time(std::size_t level) const {
    return (std::int64_t{1} << (level + 1)) <= time_compression;
  }
};

VideoAutoencoderConfig read_config(const Node& config) {
  VideoAutoencoderConfig cfg;
  if (const Node* channels = find_any(config, {"block_out_channels"}))
    cfg.channels = channels->as_ints(1, kMaxWidth);
  if (cfg.channels.empty() || cfg.channels.size() > kMaxLevels)
    config.at("block_out_channels").refuse("it must name the channels of 1 to 16 levels");
  cfg.in_channels = count_or(config, {"in_channels"}, 3);
  cfg.out_channels = count_or(config, {"out_channels"}, 3);
  cfg.latents = count_or(config, {"latent_channels"}, 16);
  cfg.layers = count_or(config, {"layers_per_block"}, 3, kMaxLayers);
  cfg.groups = count_or(config, {"norm_num_groups"}, 32);
  cfg.time_compression = count_or(config, {"temporal_compression_ratio"}, 4);
  for (const std::int64_t width : cfg.channels)
    require_divides(config, {"norm_num_groups"}, cfg.groups, width, "block_out_channels");
  for (const std::string_view key : {"use_quant_conv", "use_post_quant_conv"}) {
    if (flag_or(config, {key}, false)) config.at(key).refuse("only models without it are built");
  }
  return cfg;
}

// An encoder or a decoder: a convolution, stages, norm, activation, a convolution.
struct VideoAutoencoderHalf {
  CausalConv first, last;
  std::vector<VideoStage> stages;
  VideoNorm norm;

  Tensor operator()(const Tensor& input, const Tensor& latents, FrameCaches& caches) const {
    Tensor x = first(input, caches);
    for (const VideoStage& stage : stages) x = stage(x, latents, caches);
    x = norm(x, latents, caches);
    x = activate(Activation::kSilu, x);
    return last(x, caches);
  }

  // The video in pieces of `step` frames; the first takes what is over.
  Tensor over_time(const Tensor& video, std::int64_t step, bool conditioned) const {
    const std::int64_t length = video.size(2);
    const std::int64_t count = std::max<std::int64_t>(1, length / step);
    const std::int64_t rest = length % step;
    FrameCaches caches;
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t begin = step * i + (i == 0 ? 0 : rest);
      const std::int64_t end = std::min(length, step * (i + 1) + rest);
      const Tensor piece = slice(video, 2, begin, end);
      parts.push_back((*this)(piece, conditioned ? piece : Tensor(), caches));
      caches.advance();
    }
    return cat(parts, 2);
  }
};

VideoAutoencoderHalf make_encoder(const ImageContext& context, const VideoAutoencoderConfig& cfg) {
  Builder& builder = context.builder;
  const PathScope scope(builder, "encoder");
  VideoAutoencoderHalf half;
  half.first = make_causal_conv(builder, "conv_in", cfg.in_channels, cfg.channels.front(), 3);
  std::int64_t in = cfg.channels.front();
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    const PathScope block(builder, "down_blocks", static_cast<std::int64_t>(i));
    const std::int64_t out = cfg.channels[i];
    half.stages.push_back(make_video_stage(context, {in, out, cfg.layers, cfg.groups, 0}));
    in = out;
    if (i + 1 == cfg.channels.size()) break;
    half.stages.back().changes_time = cfg.changes_time(i);
    half.stages.back().down =
        conv_layer(context, "downsamplers.0.conv",
                   {.in = out, .out = out, .kernel = 3, .stride = 2, .bias = true});
  }
  {
    const PathScope block(builder, "mid_block");
    half.stages.push_back(make_video_stage(context, {in, in, 2, cfg.groups, 0}));
  }
  half.norm = make_video_norm(builder, "norm_out", cfg.groups, in, 0);
  half.last = make_causal_conv(builder, "conv_out", in, 2 * cfg.latents, 3);
  return half;
}

VideoAutoencoderHalf make_decoder(const ImageContext& context, const VideoAutoencoderConfig& cfg) {
  Builder& builder = context.builder;
  const PathScope scope(builder, "decoder");
  VideoAutoencoderHalf half;
  std::int64_t in = cfg.channels.back();
  half.first = make_causal_conv(builder, "conv_in", cfg.latents, in, 3);
  {
    const PathScope block(builder, "mid_block");
    half.stages.push_back(make_video_stage(context, {in, in, 2, cfg.groups, cfg.latents}));
  }
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    const PathScope block(builder, "up_blocks", static_cast<std::int64_t>(i));
    const std::int64_t out = cfg.channels[cfg.channels.size() - 1 - i];
    half.stages.push_back(
        make_video_stage(context, {in, out, cfg.layers + 1, cfg.groups, cfg.latents}));
    in = out;
    if (i + 1 == cfg.channels.size()) break;
    half.stages.back().changes_time = cfg.changes_time(i);
    half.stages.back().up =
        conv_layer(context, "upsamplers.0.conv",
                   {.in = out, .out = out, .kernel = 3, .padding = 1, .bias = true});
  }
  half.norm = make_video_norm(builder, "norm_out", cfg.groups, in, cfg.latents);
  const HeadScope head(builder);
  half.last = make_causal_conv(builder, "conv_out", in, cfg.out_channels, 3);
  return half;
}

class VideoAutoencoder final : public AutoencoderNetwork {
 public:
  VideoAutoencoder(Builder& builder, const Node& config, const ModelSettings& given)
      : AutoencoderNetwork(builder.session(), given), config_(read_config(config)) {
    height_ = settings().image_height > 0 ? settings().image_height
                                          : count_or(config, {"sample_height"}, 480);
    width_ = settings().image_width > 0 ? settings().image_width
                                        : count_or(config, {"sample_width"}, 720);
    frames_ = settings().num_frames > 0 ? settings().num_frames : 49;
    check_sides(config, height_, width_, config_.compression());
    const ImageContext context{builder, settings()};
    encoder_ = make_encoder(context, config_);
    decoder_ = make_decoder(context, config_);
  }

 private:
  Shape samples(std::int64_t size) const override {
    return {size, config_.in_channels, frames_, height_, width_};
  }
  Shape latents(std::int64_t size) const override {
    const std::int64_t factor = config_.compression();
    return {size, config_.latents, 1 + (frames_ - 1) / config_.time_compression, height_ / factor,
            width_ / factor};
  }

  Tensor moments(const Tensor& samples) const override {
    return encoder_.over_time(samples, kEncodedFrames, false);
  }
  Tensor decoded(const Tensor& latents) const override {
    return decoder_.over_time(latents, kDecodedFrames, true);
  }

  VideoAutoencoderConfig config_;
  std::int64_t height_ = 0, width_ = 0, frames_ = 0;
  VideoAutoencoderHalf encoder_, decoder_;
};

}  // namespace

// A few frames at a time, as the library does it, without tiling or slicing. image_size and
// num_frames are the video's; `model.part` runs only the encoder or the decoder.
std::unique_ptr<Network> make_video_autoencoder(Builder& builder, const Node& config,
                                                const ModelSettings& settings) {
  return std::make_unique<VideoAutoencoder>(builder, config, settings);
}

}  // namespace memfathom
