#include "estimator/models/families/diffusion/cogvideox/cogvideox_blocks.h"

#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/modulation.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/fft.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

using Streams = CogVideoXStreams;

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

NormZero make_norm_zero(Builder& builder, std::string_view name, const CogVideoXConfig& cfg) {
  const PathScope scope(builder, name);
  NormZero norm;
  norm.linear = make_linear(builder, "linear", cfg.time_size, 6 * cfg.width());
  norm.norm = make_layer_norm(builder, "norm", cfg.width());
  norm.norm.eps = cfg.norm_eps;
  return norm;
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
    const Tensor turned = rotated_in_pairs(slice(x, 2, text_length, x.size(2)), cos, sin);
    copy_into_region(x, region, turned);
  }
};

struct CogVideoXTransformerBlock {
  NormZero norm1, norm2;
  JointAttention attention;
  Linear up, down;
  double dropout = 0;

  Streams operator()(const Streams& input, const CogVideoXPass& pass) const {
    ModulatedStreams normed = norm1(input.video, input.text, pass.time);
    const Streams attended = attention(normed.video, normed.text, pass.cos, pass.sin);
    Streams hidden;
    hidden.video = gated(input.video, normed.video_gate, attended.video);
    hidden.text = gated(input.text, normed.text_gate, attended.text);
    normed = norm2(hidden.video, hidden.text, pass.time);
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

}  // namespace

CogVideoXBlock make_cogvideox_block(Builder& builder, const CogVideoXConfig& cfg,
                                    const ModelSettings& settings) {
  CogVideoXTransformerBlock block;
  const std::int64_t width = cfg.width();
  block.norm1 = make_norm_zero(builder, "norm1", cfg);
  {
    const PathScope scope(builder, "attn1");
    block.attention.head_size = cfg.head_size;
    block.attention.implementation = settings.attention;
    block.attention.q_norm = make_layer_norm(builder, "norm_q", cfg.head_size);
    block.attention.k_norm = make_layer_norm(builder, "norm_k", cfg.head_size);
    block.attention.q = make_linear(builder, "to_q", width, width, {.bias = cfg.attention_bias});
    block.attention.k = make_linear(builder, "to_k", width, width, {.bias = cfg.attention_bias});
    block.attention.v = make_linear(builder, "to_v", width, width, {.bias = cfg.attention_bias});
    block.attention.out = make_linear(builder, "to_out.0", width, width);
  }
  block.norm2 = make_norm_zero(builder, "norm2", cfg);
  block.up = make_linear(builder, "ff.net.0.proj", width, 4 * width);
  block.down = make_linear(builder, "ff.net.2", 4 * width, width);
  block.dropout = cfg.dropout;
  return block;
}

CogVideoXConfig read_cogvideox_config(const Node& config, const ModelSettings& settings) {
  CogVideoXConfig cfg{};
  cfg.heads = count_or(config, {"num_attention_heads"}, 30);
  cfg.head_size = count_or(config, {"attention_head_dim"}, 64);
  cfg.in_channels = count_or(config, {"in_channels"}, 16);
  cfg.out_channels = count_or(config, {"out_channels"}, 16);
  cfg.time_size = count_or(config, {"time_embed_dim"}, 512);
  cfg.text_size = count_or(config, {"text_embed_dim"}, 4096);
  cfg.layers = count_or(config, {"num_layers"}, 30, kMaxLayers);
  cfg.text_length = count_or(config, {"max_text_seq_length"}, 226);
  cfg.patch = count_or(config, {"patch_size"}, 2);
  cfg.patch_t = count_or(config, {"patch_size_t"}, 0);
  cfg.sample_width = count_or(config, {"sample_width"}, 90);
  cfg.sample_height = count_or(config, {"sample_height"}, 60);
  cfg.sample_frames = count_or(config, {"sample_frames"}, 49);
  cfg.compression = count_or(config, {"temporal_compression_ratio"}, 4);
  cfg.attention_bias = flag_or(config, {"attention_bias"}, true);
  cfg.patch_bias = flag_or(config, {"patch_bias"}, true);
  cfg.rotary = flag_or(config, {"use_rotary_positional_embeddings"}, false);
  cfg.learned_positions = flag_or(config, {"use_learned_positional_embeddings"}, false);
  cfg.flip = flag_or(config, {"flip_sin_to_cos"}, true);
  cfg.dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  cfg.norm_eps = number_or(config, {"norm_eps"}, 1e-5);
  return cfg;
}

}  // namespace memfathom
