#include "estimator/models/families/language/falcon.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct FalconPlan {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0;
  double dropout = 0, attention_dropout = 0;
  bool bias = false, parallel = true, multi_query = true, grouped = false, alibi = false,
       two_norms = false;
  Activation activation = Activation::kGelu;

  std::int64_t head_size() const { return hidden / heads; }
  bool one_key_head() const { return multi_query && !grouped && heads > 1; }
  std::int64_t qkv_width() const {
    if (grouped) return (heads + 2 * kv_heads) * head_size();
    return multi_query ? hidden + 2 * head_size() : 3 * hidden;
  }
};

FalconPlan read_plan(const Node& config) {
  FalconPlan plan;
  plan.hidden = required_count(config, {"hidden_size"});
  plan.layers = required_count(config, {"num_hidden_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, plan.heads, plan.hidden, "hidden_size");
  plan.kv_heads = count_or(config, {"num_kv_heads", "n_head_kv"}, plan.heads);
  require_divides(config, {"num_kv_heads", "n_head_kv"}, plan.kv_heads, plan.heads,
                  "num_attention_heads");
  plan.ffn = count_or(config, {"ffn_hidden_size"}, 4 * plan.hidden, 4 * kMostWidth);
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.dropout = probability_or(config, {"hidden_dropout"}, 0);
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  plan.bias = flag_or(config, {"bias"}, false);
  plan.parallel = flag_or(config, {"parallel_attn"}, true);
  plan.multi_query = flag_or(config, {"multi_query"}, true);
  plan.grouped = flag_or(config, {"new_decoder_architecture"}, false);
  plan.alibi = flag_or(config, {"alibi"}, false);
  plan.two_norms =
      plan.parallel && plan.grouped && count_or(config, {"num_ln_in_parallel_attn"}, 2, 2) == 2;
  plan.activation = activation_or(config, {"activation"}, "gelu");
  return plan;
}

// x[..., [i], :] along `dim`: a copy of one slice, as indexing with a list makes.
Tensor picked(const Tensor& x, int dim, std::int64_t index) {
  return clone(slice(x, dim, index, index + 1));
}

class FalconBlock {
 public:
  FalconBlock(Builder& builder, const FalconPlan& plan, const AttentionStyle& style,
              std::size_t index)
      : plan_(plan), style_(style), index_(index) {
    {
      const PathScope scope(builder, "self_attention");
      qkv_ = make_linear(builder, "query_key_value", plan.hidden, plan.qkv_width(),
                         {.bias = plan.bias, .unfused = true});
      output_ = make_linear(builder, "dense", plan.hidden, plan.hidden,
                            {.bias = plan.bias, .unfused = true});
    }
    {
      const PathScope scope(builder, "mlp");
      mlp_.activation = plan.activation;
      mlp_.first = make_linear(builder, "dense_h_to_4h", plan.hidden, plan.ffn,
                               {.bias = plan.bias, .unfused = true});
      mlp_.second = make_linear(builder, "dense_4h_to_h", plan.ffn, plan.hidden,
                                {.bias = plan.bias, .unfused = true});
    }
    if (!plan.parallel)
      second_norm_ = make_norm(builder, "post_attention_layernorm", NormKind::kLayer, plan.hidden);
    first_norm_ = make_norm(builder, plan.two_norms ? "ln_attn" : "input_layernorm",
                            NormKind::kLayer, plan.hidden);
    if (plan.two_norms) second_norm_ = make_norm(builder, "ln_mlp", NormKind::kLayer, plan.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Tensor normed = first_norm_(x);
    Tensor mlp_input = plan_.two_norms ? second_norm_(x) : normed;
    const Attended attended = attention(normed, pass);
    Tensor residual = x;
    if (!plan_.parallel && !plan_.grouped) {
      const Tensor dropped = dropout(attended.output, plan_.attention_dropout);
      residual = add(residual, dropped);
      mlp_input = second_norm_(residual);
    }
    Tensor fed = mlp_(mlp_input);
    if (plan_.parallel || plan_.grouped) add_in_place(fed, attended.output);
    const Tensor dropped = dropout(fed, plan_.dropout);
    Tensor output = add(residual, dropped);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  // [b, s, heads, d] of queries, keys and values.
  void split(const Tensor& fused, Tensor& q, Tensor& k, Tensor& v) const {
    const std::int64_t b = fused.size(0);
    const std::int64_t s = fused.size(1);
    const std::int64_t d = plan_.head_size();
    if (plan_.grouped) {
      const std::int64_t group = plan_.heads / plan_.kv_heads;
      const Tensor qkv = view(fused, {b, s, plan_.kv_heads, group + 2, d});
      const Shape wide{b, s, plan_.kv_heads, group, d};
      const Tensor q_part = slice(qkv, 3, 0, group);
      const Tensor k_part = expand(picked(qkv, 3, group), wide);
      const Tensor v_part = expand(picked(qkv, 3, group + 1), wide);
      const Shape flat{b, s, plan_.heads, d};
      q = reshape(q_part, flat);
      k = reshape(k_part, flat);
      v = reshape(v_part, flat);
      return;
    }
    if (plan_.multi_query) {
      const Tensor qkv = view(fused, {b, s, plan_.heads + 2, d});
      q = slice(qkv, 2, 0, plan_.heads);
      k = picked(qkv, 2, plan_.heads);
      v = picked(qkv, 2, plan_.heads + 1);
      return;
    }
    const Tensor qkv = view(fused, {b, s, plan_.heads, 3, d});
    q = select(qkv, 3, 0);
    k = select(qkv, 3, 1);
    v = select(qkv, 3, 2);
  }

  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor fused = qkv_(x);
    Tensor q;
    Tensor k;
    Tensor v;
    split(fused, q, k, v);
    q = transpose(q, 1, 2);
    k = transpose(k, 1, 2);
    v = transpose(v, 1, 2);
    if (!plan_.alibi) {
      Tensor turned = rotate(q, pass.rotary);
      k = rotate(k, pass.rotary);
      q = std::move(turned);
    }
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = style_.implementation == AttentionImplementation::kEager
                            ? attend_eagerly(q, k, v, pass, x.dtype())
                            : attend_by_kernel(q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  // The model calls PyTorch's function itself: keys of one head for all queries stay one head.
  Attended attend_by_kernel(const Tensor& q, const Tensor& k, const Tensor& v,
                            const Tensor& mask) const {
    if (!plan_.one_key_head()) return attend(style_, q, k, v, mask);
    AttentionOptions options;
    options.implementation = style_.implementation;
    options.scale = style_.scale;
    options.mask = mask;
    return {transpose(scaled_dot_product_attention(q, k, v, options), 1, 2), {}};
  }

  // The model's own code: scores are scaled in place and live until the weights exist; with biases
  // every step on the way has a name, and lives until the attention is done.
  Attended attend_eagerly(const Tensor& q, const Tensor& k, const Tensor& v, const Pass& pass,
                          DType hidden) const {
    const std::int64_t groups = q.size(1) / k.size(1);
    std::vector<Tensor> steps;
    {
      const Tensor keys = repeat_interleave_heads(k, groups);
      steps.push_back(matmul(q, transpose(keys, 2, 3)));
    }
    if (plan_.alibi) {
      steps.push_back(to_dtype(steps.back(), DType::kFp32));
      steps.push_back(add(steps.back(), pass.biases));
    }
    mul_scalar_in_place(steps.back(), style_.scale);
    Tensor weights;
    {
      const Tensor sum = add(steps.back(), pass.mask);
      weights = hidden == DType::kFp32 ? softmax_fp32(sum) : softmax(to_dtype(sum, hidden));
    }
    if (!plan_.alibi) steps.clear();
    weights = dropout(weights, style_.dropout);
    Tensor output = matmul(weights, repeat_interleave_heads(v, groups));
    output = contiguous(transpose(output, 1, 2));
    return {output, weights};
  }

  FalconPlan plan_;
  AttentionStyle style_;
  std::size_t index_;
  Linear qkv_, output_;
  NormLayer first_norm_, second_norm_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const FalconPlan& plan) {
  DecoderOutline outline;
  outline.layers = plan.layers;
  outline.hidden = plan.hidden;
  outline.vocabulary = plan.vocabulary;
  outline.rotary = plan.head_size();
  outline.tied_by_default = true;
  outline.scope = "transformer";
  outline.embedding = "word_embeddings";
  outline.blocks = "h";
  outline.last_norm = "ln_f";
  return outline;
}

class Falcon final : public Decoder<FalconBlock> {
 public:
  Falcon(Builder& builder, const Node& config, const ModelSettings& settings, FalconPlan plan)
      : Decoder(builder, settings, outline_of(plan)), heads_(plan.heads), alibi_(plan.alibi) {
    plan.dropout = dropout_or(plan.dropout);
    AttentionStyle style =
        attention_style(plan.alibi ? plan.attention_dropout : 0, plan.head_size());
    style.softmax_in_fp32 = false;
    build(builder, config,
          [&](std::size_t index) { return FalconBlock(builder, plan, style, index); });
  }

 private:
  bool always_masks() const override { return true; }

  void complete(Pass& pass, const Tensor& embeddings) override {
    if (!alibi_) return;
    // Slopes times positions, one row per head, joined with the causal mask.
    const std::int64_t queries = embeddings.size(1);
    const std::int64_t keys = pass.cache != nullptr ? pass.cache->length() + queries : queries;
    pass.biases = session().empty({embeddings.size(0), heads_, 1, keys}, embeddings.dtype());
    pass.mask = session().empty({embeddings.size(0), heads_, queries, keys}, embeddings.dtype());
  }

  std::int64_t heads_;
  bool alibi_;
};

}  // namespace

std::unique_ptr<Network> make_falcon(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  return std::make_unique<Falcon>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
