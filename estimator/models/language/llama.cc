#include "estimator/models/language/llama.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/language/causal_model.h"
#include "estimator/models/language/config_reader.h"
#include "estimator/models/language/experts.h"
#include "estimator/models/language/feed_forward.h"
#include "estimator/models/language/llama_plan.h"
#include "estimator/models/language/norm_layer.h"
#include "estimator/models/language/sequence_shards.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/views.h"

namespace memfathom {
namespace {

// Tables per layer were kept up to 4.37, and made per layer up to 4.44; then once per forward pass.
constexpr int kRotaryTablesEnd = 438;
constexpr int kRotaryPerModel = 445;
constexpr int kGroupedExperts = 500;

class LlamaAttention {
 public:
  LlamaAttention(Builder& builder, const LlamaPlan& plan, const AttentionStyle& style,
                 const ModelSettings& settings)
      : plan_(plan), style_(style) {
    const PathScope scope(builder, "self_attn");
    const std::int64_t q_width = plan.heads * plan.head_size;
    const std::int64_t kv_width = plan.kv_heads * plan.head_size;
    if (plan.fused_projections) {
      output_ = make_linear(builder, "o_proj", q_width, plan.hidden, {.bias = plan.output_bias});
      q_ = make_linear(builder, "qkv_proj", plan.hidden, q_width + 2 * kv_width,
                       {.bias = plan.qkv_bias});
    } else {
      q_ = make_linear(builder, "q_proj", plan.hidden, q_width, {.bias = plan.qkv_bias});
      k_ = make_linear(builder, "k_proj", plan.hidden, kv_width, {.bias = plan.qkv_bias});
      v_ = make_linear(builder, "v_proj", plan.hidden, kv_width, {.bias = plan.qkv_bias});
      output_ = make_linear(builder, "o_proj", q_width, plan.hidden, {.bias = plan.output_bias});
    }
    if (plan.qk_norm != QkNorm::kNone) {
      const bool per_head = plan.qk_norm == QkNorm::kPerHead;
      q_norm_ = make_norm(builder, "q_norm", plan.norm, per_head ? plan.head_size : q_width);
      k_norm_ = make_norm(builder, "k_norm", plan.norm, per_head ? plan.head_size : kv_width);
    }
    if (settings.transformers_version < kRotaryPerModel) {
      rotary_.emplace(builder, plan.rotary,
                      settings.transformers_version < kRotaryTablesEnd ? plan.max_positions : 0);
    }
  }

  Attended operator()(const Tensor& x, const Pass& pass, std::size_t layer,
                      const Tensor& mask) const {
    Tensor q;
    Tensor k;
    Tensor v;
    project(x, q, k, v);
    RotaryTables own;
    if (rotary_) own = rotary_->tables(pass.positions, x.dtype());
    const RotaryTables& tables = rotary_ ? own : pass.rotary;
    {
      const auto turned = [&](const Tensor& heads) {
        return plan_.joins_rotated ? rotate_and_join(heads, tables) : rotate(heads, tables);
      };
      Tensor turned_q = turned(q);
      Tensor turned_k = turned(k);
      if (plan_.rotates_in_fp32) {
        turned_q = to_dtype(turned_q, q.dtype());
        turned_k = to_dtype(turned_k, k.dtype());
      }
      q = std::move(turned_q);
      k = std::move(turned_k);
    }
    if (pass.cache != nullptr) pass.cache->update(layer, k, v);
    Attended attended = attend(style_, q, k, v, mask);
    attended.output = merge_heads(attended.output);
    attended.output = scatter_positions(output_(attended.output), plan_.shards);
    return attended;
  }

 private:
  void project(const Tensor& x, Tensor& q, Tensor& k, Tensor& v) const {
    if (plan_.fused_projections) {
      const Tensor qkv = linear_over_shards(q_, x, plan_.shards);
      const std::int64_t q_end = plan_.heads * plan_.head_size;
      const std::int64_t k_end = q_end + plan_.kv_heads * plan_.head_size;
      q = split_heads(slice(qkv, -1, 0, q_end), plan_.head_size);
      k = split_heads(slice(qkv, -1, q_end, k_end), plan_.head_size);
      v = split_heads(slice(qkv, -1, k_end, qkv.size(-1)), plan_.head_size);
      return;
    }
    const auto read = [&](const Linear& layer) {
      return linear_over_shards(layer, x, plan_.shards);
    };
    q = normed(read(q_), q_norm_);
    k = normed(read(k_), k_norm_);
    v = split_heads(read(v_), plan_.head_size);
  }

  Tensor normed(const Tensor& projected, const NormLayer& norm) const {
    switch (plan_.qk_norm) {
      case QkNorm::kNone: return split_heads(projected, plan_.head_size);
      case QkNorm::kWhole: return split_heads(norm(projected), plan_.head_size);
      case QkNorm::kPerHead: break;
    }
    const Tensor heads =
        view(projected, {projected.size(0), projected.size(1), -1, plan_.head_size});
    return transpose(norm(heads), 1, 2);
  }

  LlamaPlan plan_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_;
  NormLayer q_norm_, k_norm_;
  std::optional<Rotary> rotary_;
};

class LlamaBlock {
 public:
  LlamaBlock(Builder& builder, const LlamaPlan& plan, const AttentionStyle& style,
             const ModelSettings& settings, std::size_t index)
      : plan_(plan), index_(index), attention_(builder, plan, style, settings) {
    make_mlp(builder);
    if (plan.placement != NormPlacement::kAfter)
      input_norm_ = make_norm(builder, "input_layernorm", plan.norm, plan.hidden);
    attention_norm_ = make_norm(builder, "post_attention_layernorm", plan.norm, plan.hidden);
    if (plan.placement == NormPlacement::kBoth) {
      mlp_norm_ = make_norm(builder, "pre_feedforward_layernorm", plan.norm, plan.hidden);
    }
    if (plan.placement != NormPlacement::kBefore) {
      output_norm_ = make_norm(builder, "post_feedforward_layernorm", plan.norm, plan.hidden);
    }
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const bool windowed = has_window(plan_, static_cast<std::int64_t>(index_));
    const Tensor& mask = windowed ? pass.window_mask : pass.mask;
    Tensor weights;  // Python's `_` keeps eager's weights to the end
    Tensor hidden = plan_.placement == NormPlacement::kAfter ? x : input_norm_(x);
    {
      Attended attended = attention_(hidden, pass, index_, mask);
      hidden = std::move(attended.output);
      weights = std::move(attended.weights);
    }
    if (plan_.placement != NormPlacement::kBefore) hidden = attention_norm_(hidden);
    hidden = joined(x, hidden);
    const Tensor residual = hidden;
    if (plan_.placement == NormPlacement::kBefore) hidden = attention_norm_(hidden);
    if (plan_.placement == NormPlacement::kBoth) hidden = mlp_norm_(hidden);
    hidden = mlp(hidden);
    if (plan_.placement != NormPlacement::kBefore) hidden = output_norm_(hidden);
    return joined(residual, hidden);
  }

 private:
  void make_mlp(Builder& builder) {
    if (plan_.experts > 0) {
      const ExpertsPlan experts{plan_.hidden, plan_.ffn, plan_.experts, plan_.experts_per_token,
                                plan_.activation};
      if (plan_.grouped_experts) {
        grouped_experts_.emplace(builder, experts);
      } else {
        experts_.emplace(builder, experts);
      }
      return;
    }
    const PathScope scope(builder, "mlp");
    if (plan_.fused_projections) {
      fused_mlp_.activation = plan_.activation;
      fused_mlp_.shards = plan_.shards;
      fused_mlp_.gate_up = make_linear(builder, "gate_up_proj", plan_.hidden, 2 * plan_.ffn,
                                       {.bias = plan_.mlp_bias});
      fused_mlp_.down =
          make_linear(builder, "down_proj", plan_.ffn, plan_.hidden, {.bias = plan_.mlp_bias});
      return;
    }
    gated_mlp_.activation = plan_.activation;
    gated_mlp_.shards = plan_.shards;
    gated_mlp_.gate =
        make_linear(builder, "gate_proj", plan_.hidden, plan_.ffn, {.bias = plan_.mlp_bias});
    gated_mlp_.up =
        make_linear(builder, "up_proj", plan_.hidden, plan_.ffn, {.bias = plan_.mlp_bias});
    gated_mlp_.down =
        make_linear(builder, "down_proj", plan_.ffn, plan_.hidden, {.bias = plan_.mlp_bias});
  }

  Tensor mlp(const Tensor& x) const {
    if (experts_ || grouped_experts_) {
      const Tensor whole = gather_positions(x, plan_.shards);
      const Tensor mixed = experts_ ? (*experts_)(whole) : (*grouped_experts_)(whole);
      return scatter_positions(mixed, plan_.shards);
    }
    return plan_.fused_projections ? fused_mlp_(x) : gated_mlp_(x);
  }

  // residual + x, with the family's factor or dropout on x.
  Tensor joined(const Tensor& residual, const Tensor& x) const {
    if (plan_.residual_multiplier != 1) {
      const Tensor scaled = mul_scalar(x, plan_.residual_multiplier);
      return add(residual, scaled);
    }
    const Tensor dropped = dropout(x, plan_.residual_dropout);
    return add(residual, dropped);
  }

  LlamaPlan plan_;
  std::size_t index_;
  LlamaAttention attention_;
  GatedMlp gated_mlp_;
  FusedGatedMlp fused_mlp_;
  std::optional<Experts> experts_;
  std::optional<GroupedExperts> grouped_experts_;
  NormLayer input_norm_, attention_norm_, mlp_norm_, output_norm_;
};

class Llama final : public CausalModel {
 public:
  Llama(Builder& builder, const Node& config, const ModelSettings& settings, LlamaPlan plan)
      : CausalModel(builder, settings, plan.layers), plan_(plan) {
    plan_.residual_dropout = dropout_or(plan_.residual_dropout);
    AttentionStyle style = attention_style(plan_.attention_dropout, plan_.head_size);
    if (plan_.attention_scale > 0) style.scale = plan_.attention_scale;
    style.softcap = plan_.attention_softcap;
    {
      const PathScope scope(builder, "model");
      embedding_ = make_embedding(builder, "embed_tokens", config, plan_.vocabulary, plan_.hidden,
                                  plan_.tied_by_default);
      if (plan_.scaled_embedding_buffer)
        scale_ = builder.buffer("embed_tokens.embed_scale", {}, DType::kFp32, false);
      blocks_.reserve(static_cast<std::size_t>(plan_.layers));
      for (std::int64_t i = 0; i < plan_.layers; ++i) {
        const PathScope block(builder, "layers", i);
        const BlockScope counted(builder, i, plan_.layers, plan_.hidden);
        blocks_.emplace_back(builder, plan_, style, settings, static_cast<std::size_t>(i));
      }
      norm_ = make_norm(builder, "norm", plan_.norm, plan_.hidden);
      if (settings.transformers_version >= kRotaryPerModel)
        rotary_.emplace(builder, plan_.rotary, 0);
    }
    make_head(builder, config, embedding_, plan_.hidden, plan_.vocabulary, plan_.tied_by_default);
  }

 private:
  bool widened_logits() const override { return true; }

  Tensor body(const Tensor& ids, KeyValueCache* cache) override {
    Tensor embeddings = embedding(embedding_, ids);
    if (scale_) {
      const Tensor factor = to_dtype(scale_, embeddings.dtype());
      embeddings = mul(embeddings, factor);
    } else if (plan_.embedding_multiplier != 1) {
      embeddings = mul_scalar(embeddings, plan_.embedding_multiplier);
    }
    prepare_embeddings(settings(), embeddings);
    const std::int64_t window = plan_.window;
    Pass pass = begin_pass(embeddings, cache, plan_.mixes_windows ? 0 : window);
    if (plan_.mixes_windows) pass.window_mask = mask_for(embeddings, cache, window);
    const DType table_type = plan_.rotates_in_fp32 ? DType::kFp32 : embeddings.dtype();
    if (rotary_) pass.rotary = rotary_->tables(pass.positions, table_type);
    Tensor hidden = scatter_positions(embeddings, plan_.shards);
    if (plan_.shards > 1) embeddings.reset();
    for (const LlamaBlock& block : blocks_) hidden = run_block(settings(), block, hidden, pass);
    hidden = norm_(hidden);
    return gather_positions(hidden, plan_.shards);
  }

  Tensor head(const Tensor& hidden) override {
    Tensor logits = CausalModel::head(hidden);
    if (plan_.logits_divisor != 1) logits = div_scalar(logits, plan_.logits_divisor);
    if (plan_.logits_softcap > 0) {
      logits = div_scalar(logits, plan_.logits_softcap);
      logits = activate(Activation::kTanh, logits);
      logits = mul_scalar(logits, plan_.logits_softcap);
    }
    return logits;
  }

  LlamaPlan plan_;
  Tensor embedding_, scale_;
  std::vector<LlamaBlock> blocks_;
  NormLayer norm_;
  std::optional<Rotary> rotary_;
};

}  // namespace

std::unique_ptr<Network> make_llama(Builder& builder, const Node& config,
                                    const ModelSettings& settings) {
  LlamaPlan plan = read_llama_plan(config, settings);
  // Quantised experts are linear layers of their own in every version: bitsandbytes knows no other.
  plan.grouped_experts = settings.transformers_version >= kGroupedExperts &&
                         builder.options().quantization == Quantization::kNone;
  return std::make_unique<Llama>(builder, config, settings, plan);
}

}  // namespace memfathom
