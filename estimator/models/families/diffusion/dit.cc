// DiT: diffusers' class-conditional diffusion transformer (DiTTransformer2DModel).
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/modulation.h"
#include "estimator/models/blocks/timestep.h"
#include "estimator/models/blocks/unet_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/block_adapters.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kSpatialCompression = 8;
constexpr std::int64_t kTimeChannels = 256;

struct DitConfig {
  std::int64_t heads, head_size, in_channels, out_channels, layers, patch, sample, classes;
  bool attention_bias;
  double dropout;

  std::int64_t width() const { return heads * head_size; }
};

DitConfig read_config(const Node& config, const ModelSettings& settings) {
  DitConfig cfg{};
  cfg.heads = count_or(config, {"num_attention_heads"}, 16);
  cfg.head_size = count_or(config, {"attention_head_dim"}, 72);
  cfg.in_channels = count_or(config, {"in_channels"}, 4);
  cfg.out_channels = count_or(config, {"out_channels"}, cfg.in_channels);
  cfg.layers = count_or(config, {"num_layers"}, 28, kMaxLayers);
  cfg.patch = count_or(config, {"patch_size"}, 2);
  cfg.sample = count_or(config, {"sample_size"}, 32);
  cfg.classes = count_or(config, {"num_embeds_ada_norm"}, 1000);
  cfg.attention_bias = flag_or(config, {"attention_bias"}, true);
  cfg.dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  return cfg;
}

// What every block makes of the time and the class for itself.
struct Condition {
  TimestepEmbedding time;
  Tensor classes;  // one more for labels that are dropped

  Tensor operator()(const Tensor& timesteps, const Tensor& labels, DType dtype) const {
    Tensor t = timestep_embedding(timesteps, kTimeChannels, true);
    t = to_dtype(t, dtype);
    t = time(t);
    const Tensor label = embedding(classes, dropped(labels));
    return add(t, label);
  }

 private:
  // In training a tenth of the labels becomes "no class".
  static Tensor dropped(const Tensor& labels) {
    Session& session = labels.session();
    if (!session.training) return labels;
    const Tensor chance = session.empty(labels.shape(), DType::kFp32);
    const Tensor chosen = session.empty(labels.shape(), DType::kBool);
    return session.zeros(labels.shape(), DType::kInt64);
  }
};

struct DitBlock {
  Condition condition;
  Linear modulation, up, down;
  DiffusionAttention attention;
  double dropout = 0;

  Tensor operator()(const Tensor& input, const Tensor& timesteps, const Tensor& labels) const {
    std::vector<Tensor> parts;
    {
      Tensor t = condition(timesteps, labels, input.dtype());
      t = activate(Activation::kSilu, t);
      t = modulation(t);
      parts = chunk(t, 6, 1);
    }
    Tensor normed = modulated_norm(input, parts[1], parts[0]);
    Tensor attended = attention(normed);
    attended = mul(unsqueeze(parts[2], 1), attended);
    const Tensor hidden = add(attended, input);
    normed = modulated_norm(hidden, parts[4], parts[3]);
    Tensor fed = feed_forward(normed);
    fed = mul(unsqueeze(parts[5], 1), fed);
    return add(fed, hidden);
  }

 private:
  Tensor feed_forward(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGeluTanh, x);
    x = memfathom::dropout(x, dropout);
    return down(x);
  }
};

DitBlock make_block(Builder& builder, const DitConfig& cfg, const ModelSettings& settings) {
  DitBlock block;
  const std::int64_t width = cfg.width();
  {
    const PathScope scope(builder, "norm1");
    block.condition.time =
        make_timestep_embedding(builder, "emb.timestep_embedder", kTimeChannels, width);
    block.condition.classes =
        builder.parameter("emb.class_embedder.embedding_table.weight", {cfg.classes + 1, width});
    block.modulation = make_linear(builder, "linear", width, 6 * width);
  }
  {
    const PathScope scope(builder, "attn1");
    const LinearOptions options{.bias = cfg.attention_bias};
    block.attention.heads = cfg.heads;
    block.attention.implementation = settings.attention;
    block.attention.q = make_linear(builder, "to_q", width, width, options);
    block.attention.k = make_linear(builder, "to_k", width, width, options);
    block.attention.v = make_linear(builder, "to_v", width, width, options);
    block.attention.out = make_linear(builder, "to_out.0", width, width);
  }
  block.up = make_linear(builder, "ff.net.0.proj", width, 4 * width);
  block.down = make_linear(builder, "ff.net.2", 4 * width, width);
  block.dropout = cfg.dropout;
  return block;
}

class Dit final : public Network {
 public:
  Dit(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), config_(read_config(config, settings)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    read_extents(config);
    const std::int64_t width = config_.width();
    const std::int64_t side = config_.sample / config_.patch;
    patches_ = conv_layer({builder, settings_}, "pos_embed.proj",
                          {.in = config_.in_channels,
                           .out = width,
                           .kernel = config_.patch,
                           .stride = config_.patch,
                           .bias = true});
    positions_ =
        builder.buffer("pos_embed.pos_embed", {1, side * side, width}, DType::kFp32, false);
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const PathScope scope(builder, "transformer_blocks", i);
      const BlockScope block(builder, i, config_.layers, width);
      blocks_.push_back(std::make_shared<const DitBlock>(make_block(builder, config_, settings_)));
    }
    out_modulation_ = make_linear(builder, "proj_out_1", width, 2 * width);
    const HeadScope head(builder);
    out_ = make_linear(builder, "proj_out_2", width,
                       config_.patch * config_.patch * config_.out_channels, {.head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&x_, &timesteps_, &labels_, &target_});
    x_ = session_.zeros({size, config_.in_channels, height_, width_}, settings_.precision);
    timesteps_ = session_.zeros({size}, DType::kInt64);
    labels_ = session_.zeros({size}, DType::kInt64);
    const Shape output{size, config_.out_channels, height_, width_};
    target_ =
        targets ? make_target(session_, settings_.loss, output, settings_.precision) : Tensor();
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    Tensor hidden = embedded();
    for (const std::shared_ptr<const DitBlock>& block : blocks_) hidden = run_block(block, hidden);
    std::vector<Tensor> parts;
    {
      Tensor t = blocks_.front()->condition(timesteps_, labels_, hidden.dtype());
      t = activate(Activation::kSilu, t);
      t = out_modulation_(t);
      parts = chunk(t, 2, 1);
    }
    hidden = modulated_norm(hidden, parts[1], parts[0]);
    hidden = out_(hidden);
    return unpatchify(hidden);
  }

 private:
  void read_extents(const Node& config) {
    const auto extent = [&](std::int64_t image) {
      return image > 0 ? image / kSpatialCompression : config_.sample;
    };
    height_ = extent(settings_.image_height);
    width_ = extent(settings_.image_width);
    if (height_ != width_ || height_ < config_.patch || height_ % config_.patch != 0)
      config.refuse(
          "training.image_size must be a square whose side is a multiple of 8 times the patch "
          "size");
  }

  Tensor embedded() const {
    Tensor x = patches_(x_);
    x = transpose(flatten(x, 2), 1, 2);
    Tensor positions = positions_;
    if (positions.size(1) != x.size(1))  // another size than the table's: made anew
      positions = session_.empty({1, x.size(1), config_.width()}, DType::kFp32);
    const Tensor sum = add(x, positions);
    return to_dtype(sum, x.dtype());
  }

  Tensor run_block(const std::shared_ptr<const DitBlock>& block, const Tensor& input) const {
    const CheckpointedFunction segment = [this, block, timesteps = timesteps_,
                                          labels = labels_](const Tensor& x) {
      const Tensor output = (*block)(x, timesteps, labels);
      return settings_.adapters ? settings_.adapters->after(block.get(), output) : output;
    };
    return run_checkpointed(settings_, segment, input);
  }

  Tensor unpatchify(const Tensor& hidden) const {
    const std::int64_t p = config_.patch;
    const std::int64_t batch = hidden.size(0);
    Tensor out = reshape(hidden, {batch, height_ / p, width_ / p, p, p, config_.out_channels});
    out = permute(out, {0, 5, 1, 3, 2, 4});
    return reshape(out, {batch, config_.out_channels, height_, width_});
  }

  Session& session_;
  ModelSettings settings_;
  DitConfig config_;
  std::int64_t height_ = 0, width_ = 0;
  Layer patches_;
  Tensor positions_;
  std::vector<std::shared_ptr<const DitBlock>> blocks_;
  Linear out_modulation_, out_;
  Tensor x_, timesteps_, labels_, target_;
};

}  // namespace

// Trained to predict noise. image_size is the image's, 8 times the latents'.
std::unique_ptr<Network> make_dit(Builder& builder, const Node& config,
                                  const ModelSettings& settings) {
  return std::make_unique<Dit>(builder, config, settings);
}

}  // namespace memfathom
