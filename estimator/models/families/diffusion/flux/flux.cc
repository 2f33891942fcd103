// Flux: diffusers' FluxTransformer2DModel.
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/modulation.h"
#include "estimator/models/blocks/timestep.h"
#include "estimator/models/families/diffusion/flux/flux_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/block_adapters.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kPixelsPerToken = 16;  // eight of the autoencoder, two latents to a side
constexpr std::int64_t kDefaultSide = 1024;
constexpr std::int64_t kDefaultText = 512;
constexpr std::int64_t kTimeChannels = 256;

FluxConfig read_plan(const Node& config) {
  FluxConfig cfg;
  cfg.heads = count_or(config, {"num_attention_heads"}, 24);
  cfg.head_size = count_or(config, {"attention_head_dim"}, 128);
  cfg.layers = count_or(config, {"num_layers"}, 19, kMaxLayers);
  cfg.single_layers = count_or(config, {"num_single_layers"}, 38, kMaxLayers);
  cfg.in_channels = count_or(config, {"in_channels"}, 64);
  cfg.out_channels = count_or(config, {"out_channels"}, cfg.in_channels);
  cfg.text_size = count_or(config, {"joint_attention_dim"}, 4096);
  cfg.pooled_size = count_or(config, {"pooled_projection_dim"}, 768);
  cfg.guidance = flag_or(config, {"guidance_embeds"}, false);
  if (cfg.head_size % 2 != 0) config.at("attention_head_dim").refuse("it must be even");
  return cfg;
}

class Flux final : public Network {
 public:
  Flux(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), config_(read_plan(config)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    read_extents(config);
    const std::int64_t width = config_.width();
    {
      const PathScope scope(builder, "time_text_embed");
      time_ = make_timestep_embedding(builder, "timestep_embedder", kTimeChannels, width);
      if (config_.guidance)
        guidance_ = make_timestep_embedding(builder, "guidance_embedder", kTimeChannels, width);
      pooled_first_ = make_linear(builder, "text_embedder.linear_1", config_.pooled_size, width);
      pooled_second_ = make_linear(builder, "text_embedder.linear_2", width, width);
    }
    text_in_ = make_linear(builder, "context_embedder", config_.text_size, width);
    image_in_ = make_linear(builder, "x_embedder", config_.in_channels, width);
    make_blocks(builder, "transformer_blocks", config_.layers, make_flux_double_block);
    make_blocks(builder, "single_transformer_blocks", config_.single_layers,
                make_flux_single_block);
    out_modulation_ = make_linear(builder, "norm_out.linear", width, 2 * width);
    const HeadScope head(builder);
    out_ = make_linear(builder, "proj_out", width, config_.out_channels, {.head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&x_, &text_, &pooled_, &timesteps_, &scale_, &target_});
    const DType type = settings_.precision;
    x_ = session_.zeros({size, tokens_, config_.in_channels}, type);
    text_ = session_.zeros({size, text_length_, config_.text_size}, type);
    pooled_ = session_.zeros({size, config_.pooled_size}, type);
    timesteps_ = session_.zeros({size}, type);
    if (config_.guidance) scale_ = session_.zeros({size}, type);
    const Shape output{size, tokens_, config_.out_channels};
    target_ = targets ? make_target(session_, settings_.loss, output, type) : Tensor();
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    FluxStreams hidden;
    hidden.image = image_in_(x_);
    FluxPass pass;
    pass.time = conditioning();
    hidden.text = text_in_(text_);
    const Shape table{1, text_length_ + tokens_, 1, config_.head_size};
    pass.cos = session_.empty(table, DType::kFp32);
    pass.sin = session_.empty(table, DType::kFp32);
    for (const std::shared_ptr<const FluxBlock>& block : blocks_)
      hidden = run_block(block, hidden, pass);
    const std::vector<Tensor> parts =
        chunk(out_modulation_(activate(Activation::kSilu, pass.time)), 2, 1);
    hidden.image = modulated_norm(hidden.image, parts[0], parts[1]);
    return out_(hidden.image);
  }

 private:
  void read_extents(const Node& config) {
    const auto tokens = [&](std::int64_t given) {
      const std::int64_t pixels = given > 0 ? given : kDefaultSide;
      if (pixels % kPixelsPerToken != 0)
        config.refuse("training.image_size must be a multiple of 16, the pixels of one token");
      return pixels / kPixelsPerToken;
    };
    tokens_ = tokens(settings_.image_height) * tokens(settings_.image_width);
    text_length_ = settings_.sequence_length > 0 ? settings_.sequence_length : kDefaultText;
  }

  void make_blocks(Builder& builder, std::string_view name, std::int64_t count,
                   FluxBlock (*make)(Builder&, const FluxConfig&, const ModelSettings&)) {
    for (std::int64_t i = 0; i < count; ++i) {
      const PathScope scope(builder, name, i);
      const BlockScope block(builder, i, count, config_.width());
      blocks_.push_back(std::make_shared<const FluxBlock>(make(builder, config_, settings_)));
    }
  }

  Tensor conditioning() const {
    const auto embedded = [&](const TimestepEmbedding& by, const Tensor& value) {
      const Tensor waves = timestep_embedding(mul_scalar(value, 1000), kTimeChannels, true);
      return by(to_dtype(waves, pooled_.dtype()));
    };
    Tensor time = embedded(time_, timesteps_);
    if (guidance_) time = add(time, embedded(*guidance_, scale_));
    const Tensor pooled = pooled_second_(activate(Activation::kSilu, pooled_first_(pooled_)));
    return add(time, pooled);
  }

  FluxStreams run_block(const std::shared_ptr<const FluxBlock>& block, const FluxStreams& input,
                        const FluxPass& pass) const {
    const Tensor inputs[] = {input.image, input.text, pass.time};
    const CheckpointedMultiFunction segment = [this, block, cos = pass.cos,
                                               sin = pass.sin](std::span<const Tensor> given) {
      FluxStreams out = (*block)({given[0], given[1]}, {given[2], cos, sin});
      if (settings_.adapters) out.image = settings_.adapters->after(block.get(), out.image);
      return std::vector<Tensor>{std::move(out.image), std::move(out.text)};
    };
    std::vector<Tensor> out = run_checkpointed(settings_, segment, inputs);
    return {std::move(out[0]), std::move(out[1])};
  }

  Session& session_;
  ModelSettings settings_;
  FluxConfig config_;
  std::int64_t tokens_ = 0, text_length_ = 0;
  TimestepEmbedding time_;
  std::optional<TimestepEmbedding> guidance_;
  Linear pooled_first_, pooled_second_, text_in_, image_in_, out_modulation_, out_;
  std::vector<std::shared_ptr<const FluxBlock>> blocks_;
  Tensor x_, text_, pooled_, timesteps_, scale_, target_;
};

}  // namespace

// image_size is the image's, 1024 x 1024 if absent: latents are 1/8 of it, two by two a token.
// sequence_length is the text's, 512 if absent.
std::unique_ptr<Network> make_flux(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Flux>(builder, config, settings);
}

}  // namespace memfathom
