#include "estimator/models/diffusion/cogvideox.h"

#include <utility>
#include <vector>

#include "estimator/models/diffusion/timestep.h"
#include "estimator/models/language/config_reader.h"
#include "estimator/models/losses.h"
#include "kernels/layers/block_adapters.h"
#include "kernels/layers/normalization.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/convolution.h"
#include "kernels/ops/fft.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/checkpoint.h"

namespace memfathom {
namespace {

constexpr std::int64_t kSpatialCompression = 8;

struct Plan {
  std::int64_t heads, head_size, in_channels, out_channels, time_size, text_size, layers,
      text_length, patch, patch_t;
  std::int64_t sample_width, sample_height, sample_frames, compression;
  bool attention_bias, patch_bias, rotary, learned_positions, flip;
  double dropout, norm_eps;

  std::int64_t width() const { return heads * head_size; }
  std::int64_t tokens(std::int64_t frames, std::int64_t h, std::int64_t w) const {
    return (patch_t > 0 ? frames / patch_t : frames) * (h / patch) * (w / patch);
  }
};

Plan read_plan(const Node& config, const ModelSettings& settings) {
  Plan plan{};
  plan.heads = count_or(config, {"num_attention_heads"}, 30);
  plan.head_size = count_or(config, {"attention_head_dim"}, 64);
  plan.in_channels = count_or(config, {"in_channels"}, 16);
  plan.out_channels = count_or(config, {"out_channels"}, 16);
  plan.time_size = count_or(config, {"time_embed_dim"}, 512);
  plan.text_size = count_or(config, {"text_embed_dim"}, 4096);
  plan.layers = count_or(config, {"num_layers"}, 30, kMostLayers);
  plan.text_length = count_or(config, {"max_text_seq_length"}, 226);
  plan.patch = count_or(config, {"patch_size"}, 2);
  plan.patch_t = count_or(config, {"patch_size_t"}, 0);
  plan.sample_width = count_or(config, {"sample_width"}, 90);
  plan.sample_height = count_or(config, {"sample_height"}, 60);
  plan.sample_frames = count_or(config, {"sample_frames"}, 49);
  plan.compression = count_or(config, {"temporal_compression_ratio"}, 4);
  plan.attention_bias = flag_or(config, {"attention_bias"}, true);
  plan.patch_bias = flag_or(config, {"patch_bias"}, true);
  plan.rotary = flag_or(config, {"use_rotary_positional_embeddings"}, false);
  plan.learned_positions = flag_or(config, {"use_learned_positional_embeddings"}, false);
  plan.flip = flag_or(config, {"flip_sin_to_cos"}, true);
  plan.dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  plan.norm_eps = number_or(config, {"norm_eps"}, 1e-5);
  return plan;
}

// What a block passes on: the video's tokens and the text's.
struct Streams {
  Tensor video, text;
};

Tensor modulated(const LayerNorm& norm, const Tensor& input, const Tensor& scale,
                 const Tensor& shift) {
  Tensor x = norm(input);
  {
    const Tensor factor = add_scalar(scale, 1);
    x = mul(x, unsqueeze(factor, 1));
  }
  return add(x, unsqueeze(shift, 1));
}

struct ModulatedStreams {
  Tensor video, text, video_gate, text_gate;
};

struct NormZero {
  Linear linear;
  LayerNorm norm;

  ModulatedStreams operator()(const Tensor& video, const Tensor& text, const Tensor& temb) const {
    std::vector<Tensor> parts;
    {
      Tensor t = activate(Activation::kSilu, temb);
      t = linear(t);
      parts = chunk(t, 6, 1);
    }
    ModulatedStreams out;
    out.video = modulated(norm, video, parts[1], parts[0]);
    out.text = modulated(norm, text, parts[4], parts[3]);
    out.video_gate = unsqueeze(parts[2], 1);
    out.text_gate = unsqueeze(parts[5], 1);
    return out;
  }
};

NormZero make_norm_zero(Builder& builder, std::string_view name, const Plan& plan) {
  const PathScope scope(builder, name);
  NormZero norm;
  norm.linear = make_linear(builder, "linear", plan.time_size, 6 * plan.width());
  norm.norm = make_layer_norm(builder, "norm", plan.width());
  norm.norm.eps = plan.norm_eps;
  return norm;
}

// Pairs of neighbours are turned; everything in fp32, the result in the input's type.
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor turned;
  const std::vector<Tensor> pairs =
      unbind(reshape(x, {x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2}), -1);
  {
    const Tensor parts[] = {neg(pairs[1]), pairs[0]};
    turned = flatten(stack(parts, -1), 3);
  }
  Tensor left = to_dtype(x, DType::kFp32);
  left = mul(left, cos);
  Tensor right = to_dtype(turned, DType::kFp32);
  right = mul(right, sin);
  left = add(left, right);
  right.reset();
  return to_dtype(left, x.dtype());
}

struct JointAttention {
  Linear q, k, v, out;
  LayerNorm q_norm, k_norm;
  std::int64_t head_size = 64;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Streams operator()(const Tensor& video, const Tensor& text, const Tensor& cos,
                     const Tensor& sin) const {
    const std::int64_t text_length = text.size(1);
    Tensor hidden;
    {
      const Tensor parts[] = {text, video};
      hidden = cat(parts, 1);
    }
    Tensor query = q(hidden);
    Tensor key = k(hidden);
    Tensor value = v(hidden);
    query = in_heads(query);
    key = in_heads(key);
    value = in_heads(value);
    query = q_norm(query);
    key = k_norm(key);
    if (cos) {
      rotate_video(query, text_length, cos, sin);
      rotate_video(key, text_length, cos, sin);
    }
    AttentionOptions options;
    options.implementation = implementation;
    options.causal = false;
    hidden = scaled_dot_product_attention(query, key, value, options);
    hidden = reshape(transpose(hidden, 1, 2), {hidden.size(0), hidden.size(2), -1});
    hidden = out(hidden);
    const std::int64_t sizes[] = {text_length, hidden.size(1) - text_length};
    const std::vector<Tensor> parts = split(hidden, sizes, 1);
    return {parts[1], parts[0]};
  }

 private:
  Tensor in_heads(const Tensor& x) const {
    return transpose(view(x, {x.size(0), x.size(1), -1, head_size}), 1, 2);
  }

  static void rotate_video(Tensor& x, std::int64_t text_length, const Tensor& cos,
                           const Tensor& sin) {
    Region region{x.shape(), x.shape()};
    for (std::int64_t& begin : region.begin) begin = 0;
    region.begin[2] = text_length;
    const Tensor turned = rotated(slice(x, 2, text_length, x.size(2)), cos, sin);
    copy_into_region(x, region, turned);
  }
};

struct Block {
  NormZero norm1, norm2;
  JointAttention attention;
  Linear up, down;
  double dropout = 0;

  Streams operator()(const Streams& input, const Tensor& temb, const Tensor& cos,
                     const Tensor& sin) const {
    ModulatedStreams normed = norm1(input.video, input.text, temb);
    const Streams attended = attention(normed.video, normed.text, cos, sin);
    Streams hidden;
    hidden.video = gated(input.video, normed.video_gate, attended.video);
    hidden.text = gated(input.text, normed.text_gate, attended.text);
    normed = norm2(hidden.video, hidden.text, temb);
    {
      const Tensor parts[] = {normed.text, normed.video};
      normed.video = cat(parts, 1);
    }
    const Tensor wide = feed_forward(normed.video);
    const std::int64_t text_length = input.text.size(1);
    hidden.video =
        gated(hidden.video, normed.video_gate, slice(wide, 1, text_length, wide.size(1)));
    hidden.text = gated(hidden.text, normed.text_gate, slice(wide, 1, 0, text_length));
    return hidden;
  }

 private:
  static Tensor gated(const Tensor& x, const Tensor& gate, const Tensor& change) {
    const Tensor scaled = mul(gate, change);
    return add(x, scaled);
  }

  Tensor feed_forward(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGeluTanh, x);
    x = memfathom::dropout(x, dropout);
    x = down(x);
    return memfathom::dropout(x, dropout);
  }
};

Block make_block(Builder& builder, const Plan& plan, const ModelSettings& settings) {
  Block block;
  const std::int64_t width = plan.width();
  block.norm1 = make_norm_zero(builder, "norm1", plan);
  {
    const PathScope scope(builder, "attn1");
    block.attention.head_size = plan.head_size;
    block.attention.implementation = settings.attention;
    block.attention.q_norm = make_layer_norm(builder, "norm_q", plan.head_size);
    block.attention.k_norm = make_layer_norm(builder, "norm_k", plan.head_size);
    block.attention.q = make_linear(builder, "to_q", width, width, {.bias = plan.attention_bias});
    block.attention.k = make_linear(builder, "to_k", width, width, {.bias = plan.attention_bias});
    block.attention.v = make_linear(builder, "to_v", width, width, {.bias = plan.attention_bias});
    block.attention.out = make_linear(builder, "to_out.0", width, width);
  }
  block.norm2 = make_norm_zero(builder, "norm2", plan);
  block.up = make_linear(builder, "ff.net.0.proj", width, 4 * width);
  block.down = make_linear(builder, "ff.net.2", 4 * width, width);
  block.dropout = plan.dropout;
  return block;
}

class CogVideoX final : public Network {
 public:
  CogVideoX(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), plan_(read_plan(config, settings)) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMse;
    read_extents(config);
    const std::int64_t width = plan_.width();
    make_patch_embedding(builder, width);
    time_ = make_timestep_embedding(builder, "time_embedding", width, plan_.time_size);
    for (std::int64_t i = 0; i < plan_.layers; ++i) {
      const PathScope scope(builder, "transformer_blocks", i);
      const BlockScope block(builder, i, plan_.layers, width);
      blocks_.push_back(std::make_shared<const Block>(make_block(builder, plan_, settings_)));
    }
    norm_final_ = make_layer_norm(builder, "norm_final", width);
    norm_out_linear_ = make_linear(builder, "norm_out.linear", plan_.time_size, 2 * width);
    norm_out_ = make_layer_norm(builder, "norm_out.norm", width);
    const HeadScope head(builder);
    const std::int64_t pixels = plan_.patch * plan_.patch * (plan_.patch_t > 0 ? plan_.patch_t : 1);
    proj_out_ =
        make_linear(builder, "proj_out", width, pixels * plan_.out_channels, {.head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const ComponentScope scope(session_, Component::kInputs);
    const DType dtype = settings_.precision;
    const Shape output{size, frames_, plan_.out_channels, height_, width_};
    x_ = session_.zeros({size, frames_, plan_.in_channels, height_, width_}, dtype);
    text_ = session_.zeros({size, plan_.text_length, plan_.text_size}, dtype);
    timesteps_ = session_.zeros({size}, DType::kInt64);
    target_ = targets ? make_target(session_, settings_.loss, output, dtype) : Tensor();
    if (!plan_.rotary) return;
    const Shape table{plan_.tokens(frames_, height_, width_), plan_.head_size};
    cos_ = session_.zeros(table, DType::kFp32);
    sin_ = session_.zeros(table, DType::kFp32);
  }

  Tensor loss(Tensor* output) override {
    const Tensor y = forward();
    if (output != nullptr) *output = y;
    return apply_loss(settings_.loss, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    Tensor t = timestep_embedding(timesteps_, plan_.width(), plan_.flip);
    t = to_dtype(t, x_.dtype());
    const Tensor temb = time_(t);
    Streams streams;
    {
      Tensor hidden = embedded();
      hidden = dropout(hidden, plan_.dropout);
      streams.text = slice(hidden, 1, 0, plan_.text_length);
      streams.video = slice(hidden, 1, plan_.text_length, hidden.size(1));
    }
    for (const std::shared_ptr<const Block>& block : blocks_)
      streams = run_block(block, streams, temb);
    Tensor hidden = std::move(streams.video);
    hidden = norm_final_(hidden);
    hidden = finished(hidden, temb);
    hidden = proj_out_(hidden);
    return unpatched(hidden);
  }

 private:
  void read_extents(const Node& config) {
    height_ = settings_.image_height > 0 ? settings_.image_height / kSpatialCompression
                                         : plan_.sample_height;
    width_ = settings_.image_width > 0 ? settings_.image_width / kSpatialCompression
                                       : plan_.sample_width;
    const std::int64_t video_frames =
        settings_.num_frames > 0 ? settings_.num_frames : plan_.sample_frames;
    frames_ = 1 + (video_frames - 1) / plan_.compression;
    if (plan_.patch_t > 0) frames_ = (frames_ + plan_.patch_t - 1) / plan_.patch_t * plan_.patch_t;
    if (height_ < plan_.patch || width_ < plan_.patch || height_ % plan_.patch != 0 ||
        width_ % plan_.patch != 0) {
      config.refuse(
          "training.image_size must be a multiple of 8 times the patch size; 480 x 720 is the "
          "model's own");
    }
  }

  void make_patch_embedding(Builder& builder, std::int64_t width) {
    const PathScope scope(builder, "patch_embed");
    if (plan_.patch_t > 0) {
      patch_linear_ = make_linear(
          builder, "proj", plan_.in_channels * plan_.patch * plan_.patch * plan_.patch_t, width);
    } else {
      patch_weight_ =
          builder.parameter("proj.weight", {width, plan_.in_channels, plan_.patch, plan_.patch});
      if (plan_.patch_bias) patch_bias_ = builder.parameter("proj.bias", {width});
    }
    text_proj_ = make_linear(builder, "text_proj", plan_.text_size, width);
    if (plan_.rotary && !plan_.learned_positions) return;
    const std::int64_t frames = (plan_.sample_frames - 1) / plan_.compression + 1;
    const std::int64_t patches =
        frames * (plan_.sample_height / plan_.patch) * (plan_.sample_width / plan_.patch);
    positions_ = builder.buffer("pos_embedding", {1, plan_.text_length + patches, width},
                                DType::kFp64, plan_.learned_positions);
  }

  Tensor embedded() const {
    const Tensor text = text_proj_(text_);
    Tensor image = plan_.patch_t > 0 ? patched_in_time() : patched();
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
          session_.empty({embeds.size(1) - plan_.text_length, plan_.width()}, DType::kFp64);
      positions = session_.empty({1, embeds.size(1), plan_.width()}, DType::kFp64);
    }
    positions = to_dtype(positions, embeds.dtype());
    return add(embeds, positions);
  }

  Tensor patched() const {
    ConvolutionOptions options;
    options.stride = {plan_.patch, plan_.patch};
    options.padding = {0, 0};
    options.dilation = {1, 1};
    Tensor image = reshape(x_, {-1, plan_.in_channels, height_, width_});
    image = convolution(image, patch_weight_, patch_bias_, options);
    image = view(image, {x_.size(0), frames_, plan_.width(), image.size(2) * image.size(3)});
    image = transpose(image, 2, 3);
    return reshape(image, {x_.size(0), -1, plan_.width()});
  }

  Tensor patched_in_time() const {
    const std::int64_t p = plan_.patch;
    const std::int64_t p_t = plan_.patch_t;
    Tensor image = permute(x_, {0, 1, 3, 4, 2});
    image = reshape(
        image, {x_.size(0), frames_ / p_t, p_t, height_ / p, p, width_ / p, p, plan_.in_channels});
    image = permute(image, {0, 1, 3, 5, 7, 2, 4, 6});
    image = reshape(image, {x_.size(0), plan_.tokens(frames_, height_, width_), -1});
    return patch_linear_(image);
  }

  // Bottleneck adapters follow a block in the video's stream.
  static Streams adapted(const ModelSettings& settings, const Block& block, Streams streams) {
    if (settings.adapters) streams.video = settings.adapters->after(&block, streams.video);
    return streams;
  }

  Streams run_block(const std::shared_ptr<const Block>& block, const Streams& input,
                    const Tensor& temb) const {
    if (settings_.checkpointing == Checkpointing::kNone)
      return adapted(settings_, *block, (*block)(input, temb, cos_, sin_));
    // The segment's second result leaves through a slot of its own.
    const auto text = std::make_shared<Tensor>();
    const Segment segment = [this, block, text, temb, before = input.text, cos = cos_,
                             sin = sin_](const Tensor& video) {
      Streams out = adapted(settings_, *block, (*block)({video, before}, temb, cos, sin));
      *text = std::move(out.text);
      return out.video;
    };
    Streams out;
    out.video = settings_.checkpoint_reentrant ? checkpoint_reentrant(segment, input.video)
                                               : checkpoint(segment, input.video);
    out.text = std::move(*text);
    return out;
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

  Tensor unpatched(const Tensor& hidden) const {
    const std::int64_t p = plan_.patch;
    const std::int64_t batch = hidden.size(0);
    if (plan_.patch_t > 0) {
      Tensor out = reshape(hidden, {batch, frames_ / plan_.patch_t, height_ / p, width_ / p,
                                    plan_.out_channels, plan_.patch_t, p, p});
      out = permute(out, {0, 1, 5, 4, 2, 6, 3, 7});
      return reshape(out, {batch, frames_, plan_.out_channels, height_, width_});
    }
    Tensor out =
        reshape(hidden, {batch, frames_, height_ / p, width_ / p, plan_.out_channels, p, p});
    out = permute(out, {0, 1, 4, 2, 5, 3, 6});
    return reshape(out, {batch, frames_, plan_.out_channels, height_, width_});
  }

  Session& session_;
  ModelSettings settings_;
  Plan plan_;
  std::int64_t frames_ = 0, height_ = 0, width_ = 0;
  Tensor patch_weight_, patch_bias_, positions_;
  Linear patch_linear_, text_proj_;
  TimestepEmbedding time_;
  std::vector<std::shared_ptr<const Block>> blocks_;
  LayerNorm norm_final_, norm_out_;
  Linear norm_out_linear_, proj_out_;
  Tensor x_, text_, timesteps_, target_, cos_, sin_;
};

}  // namespace

std::unique_ptr<Network> make_cogvideox(Builder& builder, const Node& config,
                                        const ModelSettings& settings) {
  return std::make_unique<CogVideoX>(builder, config, settings);
}

}  // namespace memfathom
