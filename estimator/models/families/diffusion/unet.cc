// U-Net: diffusers' UNet2DModel (DDPM) and UNet2DConditionModel (Stable Diffusion 1.x, 2.x, XL).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/timestep.h"
#include "estimator/models/blocks/unet_blocks.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kLatentScale = 8;
constexpr std::int64_t kTextLength = 77;
constexpr std::int64_t kTimeIds = 6;

struct UNetConfig {
  bool conditioned = false;
  std::int64_t in_channels = 3, out_channels = 3, sample_size = 0;
  std::vector<std::int64_t> channels, heads, transformer_layers;
  std::vector<bool> down_attention, up_attention;
  bool mid_attention = true;
  std::int64_t layers = 2, cross_size = 0, downsample_padding = 1;
  std::int64_t added_size = 0, added_time_size = 0;  // SDXL's text embedding with sizes
  bool linear_projection = false, flip = true, fourier = false;
  UNetStyle style;
};

std::vector<bool> read_attention(const Node& config, std::string_view key, std::size_t blocks,
                                 std::vector<bool> fallback) {
  const Node* types = find_any(config, {key});
  if (types == nullptr) {
    if (fallback.size() != blocks)
      config.refuse(fmt::format("\"{}\" must be given for {} blocks", key, blocks));
    return fallback;
  }
  std::vector<bool> attention;
  for (const Node& type : types->items()) {
    static constexpr std::string_view kTypes[] = {"DownBlock2D",          "AttnDownBlock2D",
                                                  "CrossAttnDownBlock2D", "UpBlock2D",
                                                  "AttnUpBlock2D",        "CrossAttnUpBlock2D"};
    attention.push_back(type.as_choice(kTypes) % 3 != 0);
  }
  if (attention.size() != blocks)
    types->refuse(
        fmt::format("it must have one type for each of the {} block_out_channels", blocks));
  return attention;
}

// Which of the values a key has; the first if it is absent.
std::size_t choice_or(const Node& config, std::string_view key,
                      std::initializer_list<std::string_view> values) {
  const Node* node = find_any(config, {key});
  return node == nullptr ? 0 : node->as_choice(std::span(values.begin(), values.size()));
}

// One number for all blocks, or a list with one for each.
std::vector<std::int64_t> per_block(const Node* node, std::int64_t fallback, std::size_t blocks) {
  if (node == nullptr) return std::vector<std::int64_t>(blocks, fallback);
  if (!node->is_list()) return std::vector<std::int64_t>(blocks, node->as_int(1, kMaxWidth));
  std::vector<std::int64_t> values = node->as_ints(1, kMaxWidth);
  if (values.size() != blocks)
    node->refuse(fmt::format("it must have one number for each of the {} blocks", blocks));
  return values;
}

void read_channels(const Node& config, UNetConfig& cfg) {
  const bool conditioned = cfg.conditioned;
  cfg.in_channels = count_or(config, {"in_channels"}, conditioned ? 4 : 3);
  cfg.out_channels = count_or(config, {"out_channels"}, conditioned ? 4 : 3);
  cfg.sample_size = count_or(config, {"sample_size"}, conditioned ? 64 : 32);
  if (const Node* channels = find_any(config, {"block_out_channels"})) {
    cfg.channels = channels->as_ints(1, kMaxWidth);
    if (channels->items().empty()) channels->refuse("it must name at least one block");
  } else {
    cfg.channels = conditioned ? std::vector<std::int64_t>{320, 640, 1280, 1280}
                               : std::vector<std::int64_t>{224, 448, 672, 896};
  }
}

void read_blocks(const Node& config, UNetConfig& cfg) {
  const std::size_t blocks = cfg.channels.size();
  const bool conditioned = cfg.conditioned;
  cfg.down_attention =
      read_attention(config, "down_block_types", blocks, {conditioned, true, true, !conditioned});
  cfg.up_attention =
      read_attention(config, "up_block_types", blocks, {!conditioned, true, true, conditioned});
  cfg.mid_attention = conditioned || flag_or(config, {"add_attention"}, true);
  cfg.layers = count_or(config, {"layers_per_block"}, 2, kMaxLayers);
  cfg.downsample_padding = find_any(config, {"downsample_padding"}) != nullptr
                               ? config.at("downsample_padding").as_int(0, 1)
                               : 1;
}

void read_style(const Node& config, const ModelSettings& settings, UNetConfig& cfg) {
  cfg.style.groups = count_or(config, {"norm_num_groups"}, 32);
  cfg.style.eps = number_or(config, {"norm_eps"}, 1e-5);
  cfg.style.activation = activation_or(config, {"act_fn"}, "silu");
  cfg.style.dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  cfg.style.time_size = 4 * cfg.channels.front();
  cfg.style.scale_shift =
      choice_or(config, "resnet_time_scale_shift", {"default", "scale_shift"}) == 1;
  for (const std::string_view key : {"downsample_type", "upsample_type"})
    choice_or(config, key, {"conv"});
  // Frequencies that are a parameter, though one that does not learn, and sines of both signs.
  cfg.fourier =
      !cfg.conditioned && choice_or(config, "time_embedding_type", {"positional", "fourier"}) == 1;
  cfg.flip = flag_or(config, {"flip_sin_to_cos"}, true);
}

// What a text, and SDXL's sizes, say to it.
void read_condition(const Node& config, UNetConfig& cfg) {
  cfg.cross_size = count_or(config, {"cross_attention_dim"}, 1280);
  // The library's historic name: attention_head_dim is the number of heads here.
  cfg.heads = per_block(find_any(config, {"num_attention_heads", "attention_head_dim"}), 8,
                        cfg.channels.size());
  cfg.added_size = count_or(config, {"projection_class_embeddings_input_dim"}, 0);
  cfg.added_time_size = count_or(config, {"addition_time_embed_dim"}, 0);
  if (cfg.added_size > 0 && cfg.added_time_size * kTimeIds >= cfg.added_size) {
    config.refuse(
        "addition_time_embed_dim and projection_class_embeddings_input_dim do not fit together");
  }
}

void read_head_size(const Node& config, UNetConfig& cfg) {
  const Node* size = find_any(config, {"attention_head_dim"});
  const bool given = size != nullptr || config.find("attention_head_dim") == nullptr;
  for (const std::int64_t c : cfg.channels)
    cfg.heads.push_back(given ? c / (size != nullptr ? size->as_int(1, kMaxWidth) : 8) : 1);
}

UNetConfig read_config(const Node& config, const ModelSettings& settings) {
  UNetConfig cfg;
  cfg.conditioned = config.at("_class_name").as_string() == "UNet2DConditionModel";
  read_channels(config, cfg);
  read_blocks(config, cfg);
  read_style(config, settings, cfg);
  cfg.linear_projection = flag_or(config, {"use_linear_projection"}, false);
  cfg.transformer_layers =
      per_block(find_any(config, {"transformer_layers_per_block"}), 1, cfg.channels.size());
  if (cfg.conditioned) {
    read_condition(config, cfg);
  } else {
    read_head_size(config, cfg);
  }
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    if (cfg.heads[i] == 0 || cfg.channels[i] % cfg.heads[i] != 0)
      config.refuse("attention_head_dim does not divide block_out_channels");
    if (cfg.channels[i] % cfg.style.groups != 0)
      config.refuse("norm_num_groups must divide every one of block_out_channels");
  }
  return cfg;
}

using Attend = std::function<Tensor(const Tensor& x, const Tensor& text)>;

struct UNetStage {
  std::vector<std::shared_ptr<const ResnetBlock>> resnets;
  std::vector<Attend> attentions;  // none, or one for each residual block
  Layer resample;                  // at the end; absent in the last stage
};

class UNet final : public Network {
 public:
  UNet(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), config_(read_config(config, settings)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    const std::int64_t scale = config_.conditioned ? kLatentScale : 1;
    height_ = settings.image_height > 0 ? settings.image_height / scale : config_.sample_size;
    width_ = settings.image_width > 0 ? settings.image_width / scale : config_.sample_size;
    const std::int64_t least = std::int64_t{1} << (config_.channels.size() - 1);
    if (height_ % least != 0 || width_ % least != 0 || height_ == 0 || width_ == 0) {
      config.refuse(fmt::format("training.image_size must be a multiple of {} for this model",
                                least * scale));
    }
    const ImageContext context{builder, settings_};
    const std::int64_t first = config_.channels.front();
    conv_in_ = conv_layer(
        context, "conv_in",
        {.in = config_.in_channels, .out = first, .kernel = 3, .padding = 1, .bias = true});
    if (config_.fourier) {
      frequencies_ = builder.frozen_parameter("time_proj.weight", {first}, settings.precision);
      builder.count_parameters(first);
    }
    time_ = make_timestep_embedding(builder, "time_embedding", config_.fourier ? 2 * first : first,
                                    config_.style.time_size);
    if (config_.added_size > 0)
      added_ = make_timestep_embedding(builder, "add_embedding", config_.added_size,
                                       config_.style.time_size);
    make_down(context);
    // In the library's order: the middle is registered last.
    make_up(context);
    make_middle(context);
    norm_out_ = make_group_norm(builder, "conv_norm_out", config_.style.groups, first);
    conv_out_ = conv_layer(
        context, "conv_out",
        {.in = first, .out = config_.out_channels, .kernel = 3, .padding = 1, .bias = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_,
                           {&x_, &timesteps_, &target_, &text_, &pooled_text_, &time_ids_});
    const DType dtype = settings_.precision;
    x_ = session_.zeros({size, config_.in_channels, height_, width_}, dtype);
    timesteps_ = session_.zeros({size}, DType::kInt64);
    target_ = targets ? make_target(session_, settings_.loss,
                                    {size, config_.out_channels, height_, width_}, dtype)
                      : Tensor();
    if (!config_.conditioned) return;
    const std::int64_t length =
        settings_.sequence_length > 0 ? settings_.sequence_length : kTextLength;
    text_ = session_.zeros({size, length, config_.cross_size}, dtype);
    if (config_.added_size == 0) return;
    pooled_text_ =
        session_.zeros({size, config_.added_size - kTimeIds * config_.added_time_size}, dtype);
    time_ids_ = session_.zeros({size * kTimeIds}, DType::kInt64);
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    const Tensor timesteps = steps();
    const std::int64_t waves = (config_.fourier ? 2 : 1) * config_.channels.front();
    Tensor t = timestep_embedding(timesteps, waves, config_.flip);
    t = to_dtype(t, x_.dtype());
    Tensor temb = time_(t);
    if (config_.added_size > 0) temb = with_added(temb);
    Tensor sample = conv_in_(x_);
    std::vector<Tensor> skips{sample};
    std::vector<Tensor> taken;
    for (const UNetStage& stage : down_) sample = run_down(stage, sample, temb, skips);
    sample = run_middle(sample, temb);
    for (const UNetStage& stage : up_) {
      const auto count = static_cast<std::ptrdiff_t>(stage.resnets.size());
      taken.assign(skips.end() - count, skips.end());
      skips.erase(skips.end() - count, skips.end());
      sample = run_up(stage, sample, temb, taken);
    }
    sample = norm_out_(sample);
    sample = activate(config_.style.activation, sample);
    return conv_out_(sample);
  }

 private:
  Attend make_attention(const ImageContext& context, std::size_t block, std::int64_t index) {
    const PathScope scope(context.builder, "attentions", index);
    const std::int64_t channels = config_.channels[block];
    if (!config_.conditioned) {
      const DiffusionAttention attention =
          make_image_attention(context, config_.style, channels, config_.heads[block]);
      return [attention](const Tensor& x, const Tensor&) { return attention(x); };
    }
    const auto transformer = std::make_shared<SpatialTransformer>(
        context, config_.style,
        SpatialTransformerConfig{channels, config_.heads[block], config_.transformer_layers[block],
                                 config_.cross_size, config_.linear_projection});
    return [transformer](const Tensor& x, const Tensor& text) { return (*transformer)(x, text); };
  }

  void add_resnet(const ImageContext& context, UNetStage& stage, std::int64_t in,
                  std::int64_t out) {
    const PathScope scope(context.builder, "resnets",
                          static_cast<std::int64_t>(stage.resnets.size()));
    stage.resnets.push_back(make_resnet_block(context, config_.style, in, out));
  }

  void make_down(const ImageContext& context) {
    std::int64_t in = config_.channels.front();
    for (std::size_t i = 0; i < config_.channels.size(); ++i) {
      const PathScope scope(context.builder, "down_blocks", static_cast<std::int64_t>(i));
      const std::int64_t out = config_.channels[i];
      UNetStage stage;
      for (std::int64_t k = 0; k < config_.layers && config_.down_attention[i]; ++k)
        stage.attentions.push_back(make_attention(context, i, k));
      for (std::int64_t k = 0; k < config_.layers; ++k)
        add_resnet(context, stage, k == 0 ? in : out, out);
      if (i + 1 < config_.channels.size())
        stage.resample = make_downsample(context, out, config_.downsample_padding);
      down_.push_back(std::move(stage));
      in = out;
    }
  }

  void make_middle(const ImageContext& context) {
    const PathScope scope(context.builder, "mid_block");
    const std::int64_t channels = config_.channels.back();
    if (config_.mid_attention)
      middle_.attentions.push_back(make_attention(context, config_.channels.size() - 1, 0));
    add_resnet(context, middle_, channels, channels);
    add_resnet(context, middle_, channels, channels);
  }

  void make_up(const ImageContext& context) {
    const std::size_t count = config_.channels.size();
    std::int64_t previous = config_.channels.back();
    for (std::size_t i = 0; i < count; ++i) {
      const PathScope scope(context.builder, "up_blocks", static_cast<std::int64_t>(i));
      const std::size_t mirrored = count - 1 - i;
      const std::int64_t out = config_.channels[mirrored];
      const std::int64_t in = config_.channels[mirrored == 0 ? 0 : mirrored - 1];
      UNetStage stage;
      const std::int64_t layers = config_.layers + 1;
      for (std::int64_t k = 0; k < layers && config_.up_attention[i]; ++k)
        stage.attentions.push_back(make_attention(context, mirrored, k));
      for (std::int64_t k = 0; k < layers; ++k) {
        const std::int64_t skip = k + 1 == layers ? in : out;
        add_resnet(context, stage, (k == 0 ? previous : out) + skip, out);
      }
      if (i + 1 < count) stage.resample = make_upsample(context, out);
      up_.push_back(std::move(stage));
      previous = out;
    }
  }

  // timesteps * ones(batch) in UNet2DModel.
  Tensor steps() const {
    if (config_.conditioned) return timesteps_;
    const Tensor ones = session_.empty(timesteps_.shape(), DType::kInt64);
    return session_.empty(timesteps_.shape(), DType::kInt64);
  }

  Tensor with_added(const Tensor& temb) const {
    Tensor times = timestep_embedding(time_ids_, config_.added_time_size, config_.flip);
    times = reshape(times, {pooled_text_.size(0), -1});
    Tensor added;
    {
      const Tensor parts[] = {to_dtype(pooled_text_, DType::kFp32), times};
      added = cat(parts, -1);
    }
    added = to_dtype(added, temb.dtype());
    added = added_(added);
    return add(temb, added);
  }

  Tensor run_resnet(const std::shared_ptr<const ResnetBlock>& resnet, const Tensor& x,
                    const Tensor& temb) const {
    const Tensor inputs[] = {x, temb};
    const CheckpointedMultiFunction segment = [resnet](std::span<const Tensor> given) {
      return std::vector<Tensor>{(*resnet)(given[0], given[1])};
    };
    return run_checkpointed(settings_, segment, inputs).front();
  }

  Tensor run_down(const UNetStage& stage, const Tensor& input, const Tensor& temb,
                  std::vector<Tensor>& skips) const {
    Tensor hidden = input;
    for (std::size_t i = 0; i < stage.resnets.size(); ++i) {
      hidden = run_resnet(stage.resnets[i], hidden, temb);
      if (!stage.attentions.empty()) hidden = stage.attentions[i](hidden, text_);
      skips.push_back(hidden);
    }
    if (stage.resample) {
      hidden = stage.resample(hidden);
      skips.push_back(hidden);
    }
    return hidden;
  }

  Tensor run_middle(const Tensor& input, const Tensor& temb) const {
    Tensor hidden = (*middle_.resnets[0])(input, temb);
    if (!middle_.attentions.empty()) hidden = middle_.attentions[0](hidden, text_);
    return run_resnet(middle_.resnets[1], hidden, temb);
  }

  Tensor run_up(const UNetStage& stage, const Tensor& input, const Tensor& temb,
                const std::vector<Tensor>& skips) const {
    Tensor hidden = input;
    for (std::size_t i = 0; i < stage.resnets.size(); ++i) {
      {
        const Tensor parts[] = {hidden, skips[skips.size() - 1 - i]};
        hidden = cat(parts, 1);
      }
      hidden = run_resnet(stage.resnets[i], hidden, temb);
      if (!stage.attentions.empty()) hidden = stage.attentions[i](hidden, text_);
    }
    return stage.resample ? stage.resample(hidden) : hidden;
  }

  Session& session_;
  ModelSettings settings_;
  UNetConfig config_;
  std::int64_t height_ = 0, width_ = 0;
  Layer conv_in_, conv_out_;
  TimestepEmbedding time_, added_;
  std::vector<UNetStage> down_, up_;
  UNetStage middle_;
  GroupNorm norm_out_;
  Tensor frequencies_;
  Tensor x_, timesteps_, target_, text_, pooled_text_, time_ids_;
};

}  // namespace

// Trained to predict noise. image_size is that of the samples for UNet2DModel, of the image (8
// times the latents') for UNet2DConditionModel; sequence_length is the text's there.
std::unique_ptr<Network> make_unet(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<UNet>(builder, config, settings);
}

}  // namespace memfathom
