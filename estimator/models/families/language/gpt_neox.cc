#include "estimator/models/families/language/gpt_neox.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct NeoxPlan {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, rotary = 0;
  double dropout = 0, attention_dropout = 0;
  bool bias = true, parallel = true;
  Activation activation = Activation::kGelu;

  std::int64_t head_size() const { return hidden / heads; }
};

NeoxPlan read_plan(const Node& config) {
  NeoxPlan plan;
  plan.hidden = required_count(config, {"hidden_size"});
  plan.layers = required_count(config, {"num_hidden_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, plan.heads, plan.hidden, "hidden_size");
  plan.ffn = required_count(config, {"intermediate_size"});
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.rotary = rotary_size(config, plan.head_size(), 0.25);
  plan.dropout = probability_or(config, {"hidden_dropout"}, 0);
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  plan.bias = flag_or(config, {"attention_bias"}, true);
  plan.parallel = flag_or(config, {"use_parallel_residual"}, true);
  plan.activation = activation_or(config, {"hidden_act"}, "gelu");
  return plan;
}

class NeoxBlock {
 public:
  NeoxBlock(Builder& builder, const NeoxPlan& plan, const AttentionStyle& style, std::size_t index)
      : plan_(plan), style_(style), index_(index) {
    input_norm_ = make_norm(builder, "input_layernorm", NormKind::kLayer, plan.hidden);
    mlp_norm_ = make_norm(builder, "post_attention_layernorm", NormKind::kLayer, plan.hidden);
    {
      const PathScope scope(builder, "attention");
      qkv_ = make_linear(builder, "query_key_value", plan.hidden, 3 * plan.hidden,
                         {.bias = plan.bias});
      output_ = make_linear(builder, "dense", plan.hidden, plan.hidden, {.bias = plan.bias});
    }
    const PathScope scope(builder, "mlp");
    mlp_.activation = plan.activation;
    mlp_.first = make_linear(builder, "dense_h_to_4h", plan.hidden, plan.ffn);
    mlp_.second = make_linear(builder, "dense_4h_to_h", plan.ffn, plan.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Attended attended;
    {
      const Tensor normed = input_norm_(x);
      attended = attention(normed, pass);
    }
    attended.output = dropout(attended.output, plan_.dropout);
    if (!plan_.parallel) attended.output = add(attended.output, x);
    Tensor fed;
    {
      const Tensor normed = mlp_norm_(plan_.parallel ? x : attended.output);
      fed = mlp_(normed);
    }
    fed = dropout(fed, plan_.dropout);
    if (!plan_.parallel) return add(fed, attended.output);
    const Tensor both = add(fed, attended.output);
    return add(both, x);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor qkv = split_heads(qkv_(x), 3 * plan_.head_size());
    std::vector<Tensor> parts = chunk(qkv, 3, -1);
    Tensor q = std::move(parts[0]);
    Tensor k = std::move(parts[1]);
    Tensor v = std::move(parts[2]);
    {
      Tensor turned = rotate_and_join(q, pass.rotary);
      k = rotate_and_join(k, pass.rotary);
      q = std::move(turned);
    }
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  NeoxPlan plan_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer input_norm_, mlp_norm_;
  Linear qkv_, output_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const NeoxPlan& plan) {
  DecoderOutline outline;
  outline.layers = plan.layers;
  outline.hidden = plan.hidden;
  outline.vocabulary = plan.vocabulary;
  outline.rotary = plan.rotary;
  outline.embedding_dropout = plan.dropout;
  outline.scope = "gpt_neox";
  outline.embedding = "embed_in";
  outline.last_norm = "final_layer_norm";
  return outline;
}

class GptNeox final : public Decoder<NeoxBlock> {
 public:
  GptNeox(Builder& builder, const Node& config, const ModelSettings& settings, NeoxPlan plan)
      : Decoder(builder, settings, outline_of(plan)) {
    plan.dropout = dropout_or(plan.dropout);
    const AttentionStyle style = attention_style(plan.attention_dropout, plan.head_size());
    build(builder, config,
          [&](std::size_t index) { return NeoxBlock(builder, plan, style, index); });
  }
};

}  // namespace

std::unique_ptr<Network> make_gpt_neox(Builder& builder, const Node& config,
                                       const ModelSettings& settings) {
  return std::make_unique<GptNeox>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
