#include "estimator/models/families/language/phi.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct PhiPlan {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0,
               vocabulary = 0, rotary = 0;
  double residual_dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  bool qk_norm = false;
  Activation activation = Activation::kGeluNew;
};

PhiPlan read_plan(const Node& config) {
  PhiPlan plan;
  plan.hidden = required_count(config, {"hidden_size"});
  plan.layers = required_count(config, {"num_hidden_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, plan.heads, plan.hidden, "hidden_size");
  plan.kv_heads = count_or(config, {"num_key_value_heads"}, plan.heads);
  require_divides(config, {"num_key_value_heads"}, plan.kv_heads, plan.heads,
                  "num_attention_heads");
  plan.head_size = plan.hidden / plan.heads;
  plan.ffn = required_count(config, {"intermediate_size"});
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.rotary = rotary_size(config, plan.head_size, 0.5);
  plan.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
  plan.embedding_dropout = probability_or(config, {"embd_pdrop"}, 0);
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  plan.qk_norm = flag_or(config, {"qk_layernorm"}, false);
  plan.activation = activation_or(config, {"hidden_act"}, "gelu_new");
  return plan;
}

class PhiBlock {
 public:
  PhiBlock(Builder& builder, const PhiPlan& plan, const AttentionStyle& style, std::size_t index)
      : plan_(plan), style_(style), index_(index) {
    {
      const PathScope scope(builder, "self_attn");
      const std::int64_t kv_width = plan.kv_heads * plan.head_size;
      q_ = make_linear(builder, "q_proj", plan.hidden, plan.hidden);
      k_ = make_linear(builder, "k_proj", plan.hidden, kv_width);
      v_ = make_linear(builder, "v_proj", plan.hidden, kv_width);
      output_ = make_linear(builder, "dense", plan.hidden, plan.hidden);
      if (plan.qk_norm) {
        q_norm_ = make_norm(builder, "q_layernorm", NormKind::kLayer, plan.head_size);
        k_norm_ = make_norm(builder, "k_layernorm", NormKind::kLayer, plan.head_size);
      }
    }
    {
      const PathScope scope(builder, "mlp");
      mlp_.activation = plan.activation;
      mlp_.first = make_linear(builder, "fc1", plan.hidden, plan.ffn);
      mlp_.second = make_linear(builder, "fc2", plan.ffn, plan.hidden);
    }
    norm_ = make_norm(builder, "input_layernorm", NormKind::kLayer, plan.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Tensor hidden = norm_(x);
    Attended attended = attention(hidden, pass);
    attended.output = dropout(attended.output, plan_.residual_dropout);
    Tensor fed = mlp_(hidden);
    fed = dropout(fed, plan_.residual_dropout);
    const Tensor both = add(attended.output, fed);
    return add(both, x);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    Tensor q = split_heads(q_(x), plan_.head_size);
    Tensor k = split_heads(k_(x), plan_.head_size);
    Tensor v = split_heads(v_(x), plan_.head_size);
    if (plan_.qk_norm) {
      q = q_norm_(q);
      k = k_norm_(k);
    }
    const NamedParts named = turn_named_parts(q, k, pass.rotary);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  PhiPlan plan_;
  AttentionStyle style_;
  std::size_t index_;
  Linear q_, k_, v_, output_;
  NormLayer q_norm_, k_norm_, norm_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const PhiPlan& plan) {
  DecoderOutline outline;
  outline.layers = plan.layers;
  outline.hidden = plan.hidden;
  outline.vocabulary = plan.vocabulary;
  outline.rotary = plan.rotary;
  outline.embedding_dropout = plan.embedding_dropout;
  outline.head_bias = true;
  outline.last_norm = "final_layernorm";
  return outline;
}

class Phi final : public Decoder<PhiBlock> {
 public:
  Phi(Builder& builder, const Node& config, const ModelSettings& settings, PhiPlan plan)
      : Decoder(builder, settings, outline_of(plan)) {
    plan.residual_dropout = dropout_or(plan.residual_dropout);
    const AttentionStyle style = attention_style(plan.attention_dropout, plan.head_size);
    build(builder, config,
          [&](std::size_t index) { return PhiBlock(builder, plan, style, index); });
  }

 private:
  bool widened_logits() const override { return true; }
};

}  // namespace

std::unique_ptr<Network> make_phi(Builder& builder, const Node& config,
                                  const ModelSettings& settings) {
  return std::make_unique<Phi>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
