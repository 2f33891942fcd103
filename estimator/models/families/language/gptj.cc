// GPT-J and CodeGen: part of every head rotated by neighbours, attention computed in fp32 by the
// model's own code, attention and MLP side by side.
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct GptjConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0,
               rotary = 0;
  double residual_dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  bool codegen = false;  // one matrix for query, key and value; rotated heads are fp32
  Activation activation = Activation::kGeluNew;

  std::int64_t head_size() const { return hidden / heads; }
};

GptjConfig read_plan(const Node& config) {
  GptjConfig cfg;
  cfg.codegen = config.at("model_type").as_string() == "codegen";
  cfg.hidden = required_count(config, {"n_embd", "hidden_size"});
  cfg.layers = required_count(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"n_head", "num_attention_heads"});
  require_divides(config, {"n_head", "num_attention_heads"}, cfg.heads, cfg.hidden, "n_embd");
  cfg.ffn = count_or(config, {"n_inner"}, 4 * cfg.hidden, 4 * kMaxWidth);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"n_positions", "max_position_embeddings"}, 2048, kMaxTokens);
  const Node* rotary = config.find("rotary_dim");  // null: whole heads
  cfg.rotary = rotary == nullptr   ? 64
               : rotary->is_null() ? cfg.head_size()
                                   : rotary->as_int(2, cfg.head_size());
  cfg.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
  cfg.embedding_dropout = probability_or(config, {"embd_pdrop"}, 0);
  cfg.attention_dropout = probability_or(config, {"attn_pdrop"}, 0);
  cfg.activation = activation_or(config, {"activation_function"}, "gelu_new");
  return cfg;
}

class GptjBlock {
 public:
  GptjBlock(Builder& builder, const GptjConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    norm_ = make_norm(builder, "ln_1", NormKind::kLayer, cfg.hidden);
    const LinearOptions plain{.bias = false};
    {
      const PathScope scope(builder, "attn");
      if (cfg.codegen) {
        q_ = make_linear(builder, "qkv_proj", cfg.hidden, 3 * cfg.hidden, plain);
      } else {
        k_ = make_linear(builder, "k_proj", cfg.hidden, cfg.hidden, plain);
        v_ = make_linear(builder, "v_proj", cfg.hidden, cfg.hidden, plain);
        q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden, plain);
      }
      output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden, plain);
      table_ = builder.buffer("embed_positions", {cfg.positions, cfg.rotary}, DType::kFp32, false);
    }
    const PathScope scope(builder, "mlp");
    mlp_.activation = cfg.activation;
    mlp_.first = make_linear(builder, "fc_in", cfg.hidden, cfg.ffn);
    mlp_.second = make_linear(builder, "fc_out", cfg.ffn, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Tensor normed = norm_(x);
    Attended attended = attention(normed, pass);
    Tensor fed = mlp_(normed);
    fed = dropout(fed, config_.residual_dropout);
    const Tensor both = add(attended.output, fed);
    Tensor output = add(both, x);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  // A head's rotated part and the rest, which Python's locals hold until the attention returns.
  struct Parts {
    Tensor rotated, passing;
  };

  Attended attention(const Tensor& x, const Pass& pass) const {
    Tensor fused;  // CodeGen's `qkv`
    Tensor q;
    Tensor k;
    Tensor v;
    project(x, fused, q, k, v);
    std::vector<Tensor> held;
    const RotaryTables tables = positions_of(x, held);
    const Parts of_k = rotate_part(k, tables);
    const Parts of_q = rotate_part(q, tables);
    k = transpose(joined(of_k), 1, 2);
    q = transpose(joined(of_q), 1, 2);
    if (pass.cache != nullptr) {
      k = to_dtype(k, x.dtype());
      pass.cache->update(index_, k, v);
    }
    Attended attended =
        style_.implementation == AttentionImplementation::kFlash
            ? attend(style_, to_dtype(q, x.dtype()), to_dtype(k, x.dtype()), v, pass.mask)
            : attend_in_fp32(q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    attended.output = dropout(attended.output, config_.residual_dropout);
    return attended;
  }

  // q and k [b, s, heads, d], v [b, heads, s, d].
  void project(const Tensor& x, Tensor& fused, Tensor& q, Tensor& k, Tensor& v) const {
    const Shape heads{x.size(0), x.size(1), config_.heads, config_.head_size()};
    if (!config_.codegen) {
      q = view(q_(x), heads);
      k = view(k_(x), heads);
      v = transpose(view(v_(x), heads), 1, 2);
      return;
    }
    // Heads lie in groups, one for each core of the machine that it was trained on: copies.
    fused = q_(x);
    const std::vector<Tensor> parts = chunk(fused, 3, -1);
    q = view(clone(parts[0]), heads);
    k = view(clone(parts[2]), heads);
    v = transpose(view(clone(parts[1]), heads), 1, 2);
  }

  RotaryTables positions_of(const Tensor& x, std::vector<Tensor>& held) const {
    Session& session = x.session();
    const NoGrad no_grad(session);
    const Shape rows{1, x.size(1), config_.rotary};
    Tensor both;
    if (config_.codegen) {
      both = session.empty(rows, DType::kFp32);
    } else {
      held.push_back(session.empty({1, config_.positions, config_.rotary}, DType::kFp32));
      held.push_back(session.empty(rows, DType::kInt64));
      const Tensor wide = session.empty(rows, DType::kFp32);
      both = to_dtype(wide, x.dtype());
    }
    held.push_back(both);
    const std::vector<Tensor> halves = chunk(both, 2, -1);
    return {halves[1], halves[0]};
  }

  Parts rotate_part(const Tensor& x, const RotaryTables& tables) const {
    Session& session = x.session();
    const std::int64_t size = config_.rotary;
    const Tensor part = size < x.size(-1) ? slice(x, -1, 0, size) : x;
    RotaryTables spread;
    {
      const NoGrad no_grad(session);
      const Shape shape{1, x.size(1), 1, size};
      spread.sin = session.empty(shape, tables.sin.dtype());
      spread.cos = session.empty(shape, tables.cos.dtype());
    }
    Parts parts{apply_rotary(part, spread.cos, spread.sin), {}};
    if (size < x.size(-1)) parts.passing = slice(x, -1, size, x.size(-1));
    return parts;
  }

  static Tensor joined(const Parts& parts) {
    if (!parts.passing) return parts.rotated;
    const Tensor both[] = {parts.rotated, to_dtype(parts.passing, parts.rotated.dtype())};
    return cat(both, -1);
  }

  Attended attend_in_fp32(const Tensor& q_in, const Tensor& k_in, const Tensor& v,
                          const Tensor& mask) const {
    const Tensor q = to_dtype(q_in, DType::kFp32);
    const Tensor k = to_dtype(k_in, DType::kFp32);
    Tensor weights = matmul(q, transpose(k, 2, 3));
    weights = mul_scalar(weights, style_.scale);
    if (mask) weights = add(weights, mask);
    weights = softmax(weights);
    weights = to_dtype(weights, v.dtype());
    weights = dropout(weights, style_.dropout);
    const Tensor output = matmul(weights, v);
    return {contiguous(transpose(output, 1, 2)), weights};
  }

  GptjConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer norm_;
  Linear q_, k_, v_, output_;
  Tensor table_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const GptjConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.embedding_dropout = cfg.embedding_dropout;
  outline.head_bias = true;
  outline.scope = "transformer";
  outline.embedding = "wte";
  outline.blocks = "h";
  outline.last_norm = "ln_f";
  return outline;
}

// The library has the flash library's attention for GPT-J, and its own for everything else.
ModelSettings own_attention(ModelSettings settings, const GptjConfig& cfg) {
  if (cfg.codegen || settings.attention != AttentionImplementation::kFlash)
    settings.attention = AttentionImplementation::kEager;
  return settings;
}

class Gptj final : public Decoder<GptjBlock> {
 public:
  Gptj(Builder& builder, const Node& config, const ModelSettings& given, GptjConfig cfg)
      : Decoder(builder, own_attention(given, cfg), outline_of(cfg)) {
    cfg.residual_dropout = dropout_or(cfg.residual_dropout);
    const AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size());
    build(builder, config,
          [&](std::size_t index) { return GptjBlock(builder, cfg, style, index); });
  }
};

}  // namespace

std::unique_ptr<Network> make_gptj(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Gptj>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
