#include "estimator/models/families/diffusion/flux/flux_blocks.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/modulation.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

using Streams = FluxStreams;

constexpr std::int64_t kMlpRatio = 4;

// Queries, keys and values of one stream.
struct Projections {
  Linear q, k, v;
  RmsNorm q_norm, k_norm;
};

struct Heads {
  Tensor q, k, v;  // [b, s, heads, head size]
};

Projections make_projections(Builder& builder, const FluxConfig& cfg, bool added) {
  const std::int64_t width = cfg.width();
  const auto linear = [&](const char* own, const char* beside) {
    return make_linear(builder, added ? beside : own, width, width);
  };
  const auto norm = [&](const char* own, const char* beside) {
    return make_rms_norm(builder, added ? beside : own, cfg.head_size, false);
  };
  Projections made;
  made.q_norm = norm("norm_q", "norm_added_q");
  made.k_norm = norm("norm_k", "norm_added_k");
  made.q = linear("to_q", "add_q_proj");
  made.k = linear("to_k", "add_k_proj");
  made.v = linear("to_v", "add_v_proj");
  return made;
}

Heads projected(const Projections& by, const Tensor& x, std::int64_t head_size) {
  const auto in_heads = [&](const Tensor& y) {
    return view(y, {y.size(0), y.size(1), -1, head_size});
  };
  return {in_heads(by.q(x)), in_heads(by.k(x)), in_heads(by.v(x))};
}

void norm_heads(const Projections& by, Heads& heads) {
  heads.q = by.q_norm(heads.q);
  heads.k = by.k_norm(heads.k);
}

Tensor attended(Heads heads, const FluxPass& pass, AttentionImplementation implementation) {
  heads.q = rotated_in_pairs(heads.q, pass.cos, pass.sin);
  heads.k = rotated_in_pairs(heads.k, pass.cos, pass.sin);
  AttentionOptions options;
  options.implementation = implementation;
  options.causal = false;
  const Tensor out = scaled_dot_product_attention(
      transpose(heads.q, 1, 2), transpose(heads.k, 1, 2), transpose(heads.v, 1, 2), options);
  return reshape(transpose(out, 1, 2), {out.size(0), out.size(2), -1});
}

Tensor joined(const Tensor& first, const Tensor& second, int dim) {
  const Tensor parts[] = {first, second};
  return cat(parts, dim);
}

// Shifts, scales and gates from the time.
std::vector<Tensor> parts_of_time(const Linear& linear, const Tensor& time, std::int64_t parts) {
  return chunk(linear(activate(Activation::kSilu, time)), parts, 1);
}

// One stream of a double block.
struct Stream {
  Linear modulation, out, up, down;
  Projections projections;

  Tensor feed_forward(const Tensor& x) const {
    return down(activate(Activation::kGeluTanh, up(x)));
  }
};

struct DoubleBlock {
  Stream image, text;
  std::int64_t head_size = 128;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Streams operator()(const Streams& input, const FluxPass& pass) const {
    const std::vector<Tensor> image_parts = parts_of_time(image.modulation, pass.time, 6);
    Tensor normed_image = modulated_norm(input.image, image_parts[1], image_parts[0]);
    const std::vector<Tensor> text_parts = parts_of_time(text.modulation, pass.time, 6);
    Tensor normed_text = modulated_norm(input.text, text_parts[1], text_parts[0]);
    Streams change = attention({normed_image, normed_text}, pass);
    Streams hidden;
    change.image = mul(unsqueeze(image_parts[2], 1), change.image);
    hidden.image = add(input.image, change.image);
    normed_image = modulated_norm(hidden.image, image_parts[4], image_parts[3]);
    Tensor fed = image.feed_forward(normed_image);
    fed = mul(unsqueeze(image_parts[5], 1), fed);
    hidden.image = add(hidden.image, fed);
    change.text = mul(unsqueeze(text_parts[2], 1), change.text);
    hidden.text = add(input.text, change.text);
    normed_text = modulated_norm(hidden.text, text_parts[4], text_parts[3]);
    const Tensor text_fed = text.feed_forward(normed_text);
    hidden.text = gated_sum(hidden.text, text_parts[5], text_fed);
    return hidden;
  }

 private:
  Streams attention(const Streams& x, const FluxPass& pass) const {
    Heads own = projected(image.projections, x.image, head_size);
    Heads beside = projected(text.projections, x.text, head_size);
    norm_heads(image.projections, own);
    norm_heads(text.projections, beside);
    Heads both;
    both.q = joined(beside.q, own.q, 1);
    own.q.reset();
    both.k = joined(beside.k, own.k, 1);
    own.k.reset();
    both.v = joined(beside.v, own.v, 1);
    own.v.reset();
    const std::int64_t sizes[] = {x.text.size(1), x.image.size(1)};
    const std::vector<Tensor> parts =
        split(attended(std::move(both), pass, implementation), sizes, 1);
    Streams out;
    out.image = image.out(contiguous(parts[1]));
    out.text = text.out(contiguous(parts[0]));
    return out;
  }
};

struct SingleBlock {
  Linear modulation, up, out;
  Projections projections;
  std::int64_t head_size = 128;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Streams operator()(const Streams& input, const FluxPass& pass) const {
    const std::int64_t text_length = input.text.size(1);
    const Tensor residual = joined(input.text, input.image, 1);
    const std::vector<Tensor> parts = parts_of_time(modulation, pass.time, 3);
    const Tensor normed = modulated_norm(residual, parts[1], parts[0]);
    const Tensor fed = activate(Activation::kGeluTanh, up(normed));
    Tensor hidden;
    Tensor seen;
    {
      Heads heads = projected(projections, normed, head_size);
      norm_heads(projections, heads);
      seen = attended(std::move(heads), pass, implementation);
    }
    hidden = joined(seen, fed, 2);
    hidden = mul(unsqueeze(parts[2], 1), out(hidden));
    hidden = add(residual, hidden);
    return {slice(hidden, 1, text_length, hidden.size(1)), slice(hidden, 1, 0, text_length)};
  }
};

}  // namespace

FluxBlock make_flux_double_block(Builder& builder, const FluxConfig& cfg,
                                 const ModelSettings& settings) {
  const std::int64_t width = cfg.width();
  DoubleBlock block;
  block.head_size = cfg.head_size;
  block.implementation = settings.attention;
  block.image.modulation = make_linear(builder, "norm1.linear", width, 6 * width);
  block.text.modulation = make_linear(builder, "norm1_context.linear", width, 6 * width);
  {
    const PathScope scope(builder, "attn");
    block.image.projections = make_projections(builder, cfg, false);
    block.image.out = make_linear(builder, "to_out.0", width, width);
    block.text.projections = make_projections(builder, cfg, true);
    block.text.out = make_linear(builder, "to_add_out", width, width);
  }
  block.image.up = make_linear(builder, "ff.net.0.proj", width, kMlpRatio * width);
  block.image.down = make_linear(builder, "ff.net.2", kMlpRatio * width, width);
  block.text.up = make_linear(builder, "ff_context.net.0.proj", width, kMlpRatio * width);
  block.text.down = make_linear(builder, "ff_context.net.2", kMlpRatio * width, width);
  return block;
}

FluxBlock make_flux_single_block(Builder& builder, const FluxConfig& cfg,
                                 const ModelSettings& settings) {
  const std::int64_t width = cfg.width();
  SingleBlock block;
  block.head_size = cfg.head_size;
  block.implementation = settings.attention;
  block.modulation = make_linear(builder, "norm.linear", width, 3 * width);
  block.up = make_linear(builder, "proj_mlp", width, kMlpRatio * width);
  block.out = make_linear(builder, "proj_out", (kMlpRatio + 1) * width, width);
  const PathScope scope(builder, "attn");
  block.projections = make_projections(builder, cfg, false);
  return block;
}

}  // namespace memfathom
