// CogVideoX: diffusers' CogVideoXTransformer3DModel, with position tables (2b) or rotary embedding
// (5b).
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/timestep.h"
#include "estimator/models/families/diffusion/cogvideox/cogvideox_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/block_adapters.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kSpatialCompression = 8;

class CogVideoX final : public Network {
 public:
  CogVideoX(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()),
        settings_(settings),
        config_(read_cogvideox_config(config, settings)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    read_extents(config);
    const std::int64_t width = config_.width();
    make_patch_embedding(builder, width);
    time_ = make_timestep_embedding(builder, "time_embedding", width, config_.time_size);
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const PathScope scope(builder, "transformer_blocks", i);
      const BlockScope block(builder, i, config_.layers, width);
      blocks_.push_back(std::make_shared<const CogVideoXBlock>(
          make_cogvideox_block(builder, config_, settings_)));
    }
    norm_final_ = make_layer_norm(builder, "norm_final", width);
    norm_out_linear_ = make_linear(builder, "norm_out.linear", config_.time_size, 2 * width);
    norm_out_ = make_layer_norm(builder, "norm_out.norm", width);
    const HeadScope head(builder);
    const std::int64_t pixels =
        config_.patch * config_.patch * (config_.patch_t > 0 ? config_.patch_t : 1);
    proj_out_ =
        make_linear(builder, "proj_out", width, pixels * config_.out_channels, {.head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&x_, &text_, &timesteps_, &target_, &cos_, &sin_});
    const DType dtype = settings_.precision;
    const Shape output{size, frames_, config_.out_channels, height_, width_};
    x_ = session_.zeros({size, frames_, config_.in_channels, height_, width_}, dtype);
    text_ = session_.zeros({size, config_.text_length, config_.text_size}, dtype);
    timesteps_ = session_.zeros({size}, DType::kInt64);
    target_ = targets ? make_target(session_, settings_.loss, output, dtype) : Tensor();
    if (!config_.rotary) return;
    const Shape table{config_.tokens(frames_, height_, width_), config_.head_size};
    cos_ = session_.zeros(table, DType::kFp32);
    sin_ = session_.zeros(table, DType::kFp32);
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    Tensor t = timestep_embedding(timesteps_, config_.width(), config_.flip);
    t = to_dtype(t, x_.dtype());
    const CogVideoXPass pass{time_(t), cos_, sin_};
    CogVideoXStreams streams;
    {
      Tensor hidden = embedded();
      hidden = dropout(hidden, config_.dropout);
      streams.text = slice(hidden, 1, 0, config_.text_length);
      streams.video = slice(hidden, 1, config_.text_length, hidden.size(1));
    }
    for (const std::shared_ptr<const CogVideoXBlock>& block : blocks_)
      streams = run_block(block, streams, pass);
    Tensor hidden = std::move(streams.video);
    hidden = norm_final_(hidden);
    hidden = finished(hidden, pass.time);
    hidden = proj_out_(hidden);
    return unpatchify(hidden);
  }

 private:
  void read_extents(const Node& config) {
    height_ = settings_.image_height > 0 ? settings_.image_height / kSpatialCompression
                                         : config_.sample_height;
    width_ = settings_.image_width > 0 ? settings_.image_width / kSpatialCompression
                                       : config_.sample_width;
    const std::int64_t video_frames =
        settings_.num_frames > 0 ? settings_.num_frames : config_.sample_frames;
    frames_ = 1 + (video_frames - 1) / config_.compression;
    if (config_.patch_t > 0)
      frames_ = (frames_ + config_.patch_t - 1) / config_.patch_t * config_.patch_t;
    if (height_ < config_.patch || width_ < config_.patch || height_ % config_.patch != 0 ||
        width_ % config_.patch != 0) {
      config.refuse(
          "training.image_size must be a multiple of 8 times the patch size; 480 x 720 is the "
          "model's own");
    }
  }

  void make_patch_embedding(Builder& builder, std::int64_t width) {
    const PathScope scope(builder, "patch_embed");
    if (config_.patch_t > 0) {
      patch_linear_ =
          make_linear(builder, "proj",
                      config_.in_channels * config_.patch * config_.patch * config_.patch_t, width);
    } else {
      patch_weight_ = builder.parameter("proj.weight",
                                        {width, config_.in_channels, config_.patch, config_.patch});
      if (config_.patch_bias) patch_bias_ = builder.parameter("proj.bias", {width});
    }
    text_proj_ = make_linear(builder, "text_proj", config_.text_size, width);
    if (config_.rotary && !config_.learned_positions) return;
    const std::int64_t frames = (config_.sample_frames - 1) / config_.compression + 1;
    const std::int64_t patches =
        frames * (config_.sample_height / config_.patch) * (config_.sample_width / config_.patch);
    positions_ = builder.buffer("pos_embedding", {1, config_.text_length + patches, width},
                                DType::kFp64, config_.learned_positions);
  }

  Tensor embedded() const {
    const Tensor text = text_proj_(text_);
    Tensor image = config_.patch_t > 0 ? patched_in_time() : patched();
    Tensor embeds;
    {
      const Tensor parts[] = {text, image};
      embeds = cat(parts, 1);
    }
    if (!positions_) return embeds;
    Tensor positions = positions_;
    if (positions.size(1) != embeds.size(1)) {
      // Another size than the table's: it is computed anew, in fp64, in each forward pass.
      const Tensor grid =
          session_.empty({embeds.size(1) - config_.text_length, config_.width()}, DType::kFp64);
      positions = session_.empty({1, embeds.size(1), config_.width()}, DType::kFp64);
    }
    positions = to_dtype(positions, embeds.dtype());
    return add(embeds, positions);
  }

  Tensor patched() const {
    ConvolutionOptions options;
    options.stride = {config_.patch, config_.patch};
    options.padding = {0, 0};
    options.dilation = {1, 1};
    Tensor image = reshape(x_, {-1, config_.in_channels, height_, width_});
    image = convolution(image, patch_weight_, patch_bias_, options);
    image = view(image, {x_.size(0), frames_, config_.width(), image.size(2) * image.size(3)});
    image = transpose(image, 2, 3);
    return reshape(image, {x_.size(0), -1, config_.width()});
  }

  Tensor patched_in_time() const {
    const std::int64_t p = config_.patch;
    const std::int64_t p_t = config_.patch_t;
    Tensor image = permute(x_, {0, 1, 3, 4, 2});
    image = reshape(image, {x_.size(0), frames_ / p_t, p_t, height_ / p, p, width_ / p, p,
                            config_.in_channels});
    image = permute(image, {0, 1, 3, 5, 7, 2, 4, 6});
    image = reshape(image, {x_.size(0), config_.tokens(frames_, height_, width_), -1});
    return patch_linear_(image);
  }

  CogVideoXStreams run_block(const std::shared_ptr<const CogVideoXBlock>& block,
                             const CogVideoXStreams& input, const CogVideoXPass& pass) const {
    const Tensor inputs[] = {input.video, input.text, pass.time};
    const CheckpointedMultiFunction segment = [this, block, cos = pass.cos,
                                               sin = pass.sin](std::span<const Tensor> given) {
      CogVideoXStreams out = (*block)({given[0], given[1]}, {given[2], cos, sin});
      // Bottleneck adapters follow a block in the video's stream.
      if (settings_.adapters) out.video = settings_.adapters->after(block.get(), out.video);
      return std::vector<Tensor>{std::move(out.video), std::move(out.text)};
    };
    std::vector<Tensor> out = run_checkpointed(settings_, segment, inputs);
    return {std::move(out[0]), std::move(out[1])};
  }

  Tensor finished(const Tensor& input, const Tensor& temb) const {
    std::vector<Tensor> parts;
    {
      Tensor t = activate(Activation::kSilu, temb);
      t = norm_out_linear_(t);
      parts = chunk(t, 2, 1);
    }
    Tensor x = norm_out_(input);
    {
      const Tensor factor = add_scalar(unsqueeze(parts[1], 1), 1);
      x = mul(x, factor);
    }
    return add(x, unsqueeze(parts[0], 1));
  }

  Tensor unpatchify(const Tensor& hidden) const {
    const std::int64_t p = config_.patch;
    const std::int64_t batch = hidden.size(0);
    if (config_.patch_t > 0) {
      Tensor out = reshape(hidden, {batch, frames_ / config_.patch_t, height_ / p, width_ / p,
                                    config_.out_channels, config_.patch_t, p, p});
      out = permute(out, {0, 1, 5, 4, 2, 6, 3, 7});
      return reshape(out, {batch, frames_, config_.out_channels, height_, width_});
    }
    Tensor out =
        reshape(hidden, {batch, frames_, height_ / p, width_ / p, config_.out_channels, p, p});
    out = permute(out, {0, 1, 4, 2, 5, 3, 6});
    return reshape(out, {batch, frames_, config_.out_channels, height_, width_});
  }

  Session& session_;
  ModelSettings settings_;
  CogVideoXConfig config_;
  std::int64_t frames_ = 0, height_ = 0, width_ = 0;
  Tensor patch_weight_, patch_bias_, positions_;
  Linear patch_linear_, text_proj_;
  TimestepEmbedding time_;
  std::vector<std::shared_ptr<const CogVideoXBlock>> blocks_;
  LayerNorm norm_final_, norm_out_;
  Linear norm_out_linear_, proj_out_;
  Tensor x_, text_, timesteps_, target_, cos_, sin_;
};

}  // namespace

// image_size and num_frames are the video's: latents are 1/8 in height and width, and 1 + (frames -
// 1) / 4 in time.
std::unique_ptr<Network> make_cogvideox(Builder& builder, const Node& config,
                                        const ModelSettings& settings) {
  return std::make_unique<CogVideoX>(builder, config, settings);
}

}  // namespace memfathom
