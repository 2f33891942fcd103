#include "estimator/models/families/language/t5/t5_stack.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/masks.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// torch.where(condition, bias, least): keeps the condition; the gradient is masked like the bias.
Tensor masked_bias(const Tensor& condition, const Tensor& bias) {
  Session& session = bias.session();
  Recording tape(session, "where", {&bias});
  tape.save(condition);
  const Shape shape = condition.size(0) > bias.size(0)
                          ? Shape{condition.size(0), bias.size(1), bias.size(2), bias.size(3)}
                          : bias.shape();
  Tensor out = session.empty(shape, bias.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor zero = b.session().empty({}, b.gradient().dtype());
    b.give(0, b.session().empty(b.gradient().shape(), b.gradient().dtype()));
  });
  return out;
}

// create_position_bias_mask: one additive mask of the bias and whatever else forbids positions.
Tensor additive_mask(const Tensor& bias, const Tensor& mask, bool causal) {
  Session& session = bias.session();
  if (mask) return contiguous(masked_bias(mask, bias));
  if (!causal) return contiguous(bias);
  Tensor allowed;
  {
    const Tensor rows = session.empty({bias.size(2)}, DType::kInt64);
    const Tensor columns = session.empty({bias.size(3)}, DType::kInt64);
    allowed = session.empty({1, 1, bias.size(2), bias.size(3)}, DType::kBool);
  }
  return contiguous(masked_bias(allowed, bias));
}

Attended attend_with_bias(const AttentionStyle& style, const Tensor& q, const Tensor& k,
                          const Tensor& v, const Tensor& bias, const Tensor& mask) {
  if (style.implementation != AttentionImplementation::kEager) {
    const Tensor additive = additive_mask(bias, mask, style.causal);
    return attend(style, q, k, v, additive);
  }
  Tensor weights = matmul(q, transpose(k, 2, 3));
  weights = mul_scalar(weights, style.scale);
  weights = add(weights, bias);
  if (mask) weights = add(weights, mask);
  weights = softmax(weights);
  weights = dropout(weights, style.dropout);
  Tensor output = matmul(weights, v);
  output = transpose(output, 1, 2);
  output = contiguous(output);
  return {output, weights};
}

// _relative_position_bucket: signs, distances, logarithms of the large ones.
Tensor relative_buckets(Session& session, const Shape& shape, bool bidirectional) {
  Tensor buckets;
  Tensor distance;
  if (bidirectional) {
    buckets = session.empty(shape, DType::kBool);
    for (int i = 0; i < 3; ++i) buckets = session.empty(shape, DType::kInt64);
    distance = session.empty(shape, DType::kInt64);
  } else {
    distance = session.empty(shape, DType::kInt64);
    for (int i = 0; i < 2; ++i) distance = session.empty(shape, DType::kInt64);
  }
  const Tensor small = session.empty(shape, DType::kBool);
  Tensor large = session.empty(shape, DType::kFp32);
  for (int i = 0; i < 4; ++i) large = session.empty(shape, DType::kFp32);
  for (int i = 0; i < 2; ++i) large = session.empty(shape, DType::kInt64);
  {
    const Tensor most = session.empty(shape, DType::kInt64);
    large = session.empty(shape, DType::kInt64);
  }
  const Tensor chosen = session.empty(shape, DType::kInt64);
  return bidirectional ? buckets : session.empty(shape, DType::kInt64);
}

// In fp16 every part of a block ends with a clamp to what the type can hold.
Tensor clamped(const Tensor& x) {
  if (x.dtype() != DType::kFp16) return x;
  static constexpr std::array<double, 4> kRange{-65504, 65504};
  Session& session = x.session();
  Recording tape(session, "clamp", {&x});
  tape.save(x);
  { const Tensor infinite = session.empty(x.shape(), DType::kBool); }
  Tensor out = elementwise(Elementwise::kHardtanh, x.dtype(), {&x}, kRange);
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    Session& s = b.session();
    const Tensor on_edge = s.empty(kept.shape(), DType::kBool);
    const Tensor outside = s.empty(kept.shape(), DType::kBool);
    const Tensor halved = s.empty(kept.shape(), kept.dtype());
    const Tensor chosen = s.empty(kept.shape(), kept.dtype());
    b.give(0, elementwise(Elementwise::kHardtanhBackward, kept.dtype(), {&b.gradient(), &kept},
                          kRange));
  });
  return out;
}

}  // namespace

T5Config read_t5_config(const Node& config, const ModelSettings& settings) {
  T5Config cfg;
  cfg.hidden = required_count(config, {"d_model"});
  cfg.layers = required_count(config, {"num_layers"}, kMaxLayers);
  cfg.decoder_layers = count_or(config, {"num_decoder_layers"}, cfg.layers, kMaxLayers);
  cfg.heads = required_count(config, {"num_heads"});
  cfg.head_size = required_count(config, {"d_kv"});
  cfg.ffn = required_count(config, {"d_ff"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.buckets = count_or(config, {"relative_attention_num_buckets"}, 32, kMaxWidth);
  cfg.dropout = settings.dropout.value_or(probability_or(config, {"dropout_rate"}, 0.1));
  // Untied in the configuration, T5 1.1 does not scale its output; since 5.0 it is tied all the
  // same.
  const bool said_tied = flag_or(config, {"tie_word_embeddings"}, true);
  cfg.tied = said_tied || settings.transformers.always_ties_t5();
  cfg.scales_output = said_tied && flag_or(config, {"scale_decoder_outputs"}, true);
  // mT5 is T5 1.1 in many languages: gated by default, and its output is never scaled.
  const bool multilingual = config.at("model_type").as_string() == "mt5";
  if (multilingual) cfg.scales_output = false;
  const Node* projection = find_any(config, {"feed_forward_proj"});
  const std::string kind = projection != nullptr ? projection->as_string()
                           : multilingual        ? "gated-gelu"
                                                 : "relu";
  cfg.gated = kind.rfind("gated-", 0) == 0;
  // "gated-gelu" means the tanh form in elementary operations.
  const std::string act = cfg.gated ? kind.substr(6) : kind;
  const std::string curve = cfg.gated && act == "gelu" ? "gelu_new" : act;
  // The library works dense_act_fn out of feed_forward_proj whenever it reads a configuration.
  const std::optional<Activation> named = parse_activation(curve);
  if (!named && projection != nullptr)
    projection->refuse("it must be an activation such as relu, or gated-gelu");
  cfg.activation = projection != nullptr || multilingual
                       ? *named
                       : activation_or(config, {"dense_act_fn"}, "relu");
  if (const Node* architectures = find_any(config, {"architectures"});
      architectures != nullptr && !architectures->items().empty()) {
    cfg.encoder_only =
        architectures->items().front().as_string().find("EncoderModel") != std::string::npos;
  }
  return cfg;
}

T5Attention::T5Attention(Builder& builder, const char* name, const T5Config& cfg,
                         const AttentionStyle& style, bool has_bias, bool checkpointed)
    : checkpointed_(checkpointed), head_size_(cfg.head_size), style_(style) {
  const PathScope scope(builder, name);
  const std::int64_t inner = cfg.heads * cfg.head_size;
  q_ = make_linear(builder, "q", cfg.hidden, inner, {.bias = false});
  k_ = make_linear(builder, "k", cfg.hidden, inner, {.bias = false});
  v_ = make_linear(builder, "v", cfg.hidden, inner, {.bias = false});
  output_ = make_linear(builder, "o", inner, cfg.hidden, {.bias = false});
  if (has_bias)
    table_ = builder.parameter("relative_attention_bias.weight", {cfg.buckets, cfg.heads});
}

Tensor T5Attention::make_bias(const Tensor& q, const Tensor& k) const {
  Session& session = q.session();
  if (!table_) {
    Tensor zeros = session.zeros({1, q.size(1), q.size(2), k.size(2)}, q.dtype());
    if (checkpointed_ && session.training) zeros.set_requires_grad(true);
    return zeros;
  }
  const Shape shape{q.size(2), k.size(2)};
  const Tensor context = session.empty({q.size(2), 1}, DType::kInt64);
  const Tensor memory = session.empty({1, k.size(2)}, DType::kInt64);
  const Tensor relative = session.empty(shape, DType::kInt64);
  const Tensor buckets = relative_buckets(session, shape, !style_.causal);
  const Tensor values = embedding(table_, buckets);
  return unsqueeze(permute(values, {2, 0, 1}), 0);
}

Attended T5Attention::operator()(const Tensor& x, const Tensor& source, const Tensor& mask,
                                 Tensor& bias) const {
  const Tensor q = split_heads(q_(x), head_size_);
  const Tensor k = split_heads(k_(source), head_size_);
  const Tensor v = split_heads(v_(source), head_size_);
  if (!bias) bias = make_bias(q, k);
  Attended attended = attend_with_bias(style_, q, k, v, bias, mask);
  attended.output = merge_heads(attended.output);
  attended.output = output_(attended.output);
  return attended;
}

T5Block::T5Block(Builder& builder, const T5Config& cfg, const AttentionStyle& style,
                 const AttentionStyle& cross_style, bool decoder, bool first, bool checkpointed)
    : config_(cfg), self_(builder, "layer.0.SelfAttention", cfg, style, first, checkpointed) {
  self_norm_ = make_norm(builder, "layer.0.layer_norm", NormKind::kRmsMixed, cfg.hidden);
  if (decoder) {
    cross_.emplace_back(builder, "layer.1.EncDecAttention", cfg, cross_style, false, checkpointed);
    cross_norm_ = make_norm(builder, "layer.1.layer_norm", NormKind::kRmsMixed, cfg.hidden);
  }
  const PathScope scope(builder, decoder ? "layer.2" : "layer.1");
  {
    const PathScope dense(builder, "DenseReluDense");
    first_ = make_linear(builder, cfg.gated ? "wi_0" : "wi", cfg.hidden, cfg.ffn, {.bias = false});
    if (cfg.gated) gate_ = make_linear(builder, "wi_1", cfg.hidden, cfg.ffn, {.bias = false});
    second_ = make_linear(builder, "wo", cfg.ffn, cfg.hidden, {.bias = false});
  }
  mlp_norm_ = make_norm(builder, "layer_norm", NormKind::kRmsMixed, cfg.hidden);
}

Tensor T5Block::feed_forward(const Tensor& x) const {
  Tensor hidden = first_(x);
  hidden = activate(config_.activation, hidden);
  if (config_.gated) {
    const Tensor active = hidden;
    const Tensor linear_part = gate_(x);
    hidden = mul(active, linear_part);
    hidden = dropout(hidden, config_.dropout);
    hidden = to_dtype(hidden, second_.weight ? second_.weight.dtype() : hidden.dtype());
    return second_(hidden);
  }
  hidden = dropout(hidden, config_.dropout);
  hidden = to_dtype(hidden, second_.weight ? second_.weight.dtype() : hidden.dtype());
  return second_(hidden);
}

Tensor T5Block::operator()(const Tensor& x, const T5Pass& pass, T5Biases& biases) const {
  Tensor weights;
  Tensor cross_weights;
  // residual + dropout(part)
  const auto joined = [&](const Tensor& residual, const Tensor& part) {
    const Tensor dropped = dropout(part, config_.dropout);
    return add(residual, dropped);
  };
  Tensor hidden;
  {
    const Tensor normed = self_norm_(x);
    const Attended attended = self_(normed, normed, pass.mask, biases.self);
    weights = attended.weights;
    hidden = joined(x, attended.output);
  }
  hidden = clamped(hidden);
  if (!cross_.empty()) {
    const Tensor residual = hidden;
    const Tensor normed = cross_norm_(residual);
    const Attended attended = cross_.front()(normed, pass.encoded, pass.cross_mask, biases.cross);
    cross_weights = attended.weights;
    hidden = joined(residual, attended.output);
    hidden = clamped(hidden);
  }
  Tensor forwarded = mlp_norm_(hidden);
  forwarded = feed_forward(forwarded);
  hidden = joined(hidden, forwarded);
  return clamped(hidden);
}

T5Stack::T5Stack(Builder& builder, const char* name, const T5Config& cfg,
                 const ModelSettings& settings, bool decoder)
    : config_(cfg), settings_(settings), decoder_(decoder) {
  const PathScope scope(builder, name);
  AttentionStyle style;
  style.implementation = settings.attention;
  style.dropout = cfg.dropout;
  style.scale = 1;
  style.softmax_in_fp32 = false;
  AttentionStyle cross_style = style;
  style.causal = decoder;
  cross_style.causal = false;
  const std::int64_t layers = decoder ? cfg.decoder_layers : cfg.layers;
  blocks_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    const PathScope block(builder, "block", i);
    // The last blocks of the whole model are the decoder's.
    const BlockScope counted(builder, i,
                             decoder || cfg.encoder_only ? layers : layers + cfg.decoder_layers);
    blocks_.emplace_back(builder, cfg, style, cross_style, decoder, i == 0,
                         settings.checkpointing != Checkpointing::kNone);
  }
  norm_ = make_norm(builder, "final_layer_norm", NormKind::kRmsMixed, cfg.hidden);
}

Tensor T5Stack::run(const T5Block& block, const Tensor& x, const T5Pass& pass,
                    T5Biases& biases) const {
  if (!checkpoints(settings_, x.session())) return block(x, pass, biases);
  if (!settings_.checkpoint_reentrant || settings_.checkpointing == Checkpointing::kSelective) {
    // Run again, the first block makes biases again; the others go on with what they were given.
    const auto made = std::make_shared<T5Biases>();
    Tensor output = checkpoint(
        [&block, pass, given = biases, out = std::weak_ptr(made)](const Tensor& input) {
          T5Biases own = given;
          Tensor result = block(input, pass, own);
          if (const auto first_run = out.lock()) *first_run = std::move(own);
          return result;
        },
        x,
        settings_.checkpointing == Checkpointing::kSelective ? CheckpointPolicy::kSelective
                                                             : CheckpointPolicy::kRecomputeAll);
    biases = std::move(*made);
    return output;
  }
  const Tensor inputs[] = {x, pass.mask, biases.self, pass.encoded, pass.cross_mask, biases.cross};
  const CheckpointedMultiFunction segment = [&block](std::span<const Tensor> given) {
    T5Pass own;
    own.mask = given[1];
    own.encoded = given[3];
    own.cross_mask = given[4];
    T5Biases own_biases{given[2], given[5]};
    Tensor result = block(given[0], own, own_biases);
    return std::vector<Tensor>{std::move(result), own_biases.self, own_biases.cross};
  };
  std::vector<Tensor> outputs = checkpoint_reentrant(segment, inputs);
  biases = {std::move(outputs[1]), std::move(outputs[2])};
  return std::move(outputs[0]);
}

Tensor T5Stack::operator()(const Tensor& table, const Tensor& ids, const Tensor& encoded,
                           const Tensor& padding) const {
  Session& session = ids.session();
  Tensor embedded = embedding(table, ids);
  prepare_embeddings(settings_, embedded);
  const bool eager = settings_.attention == AttentionImplementation::kEager;
  MaskCase c;
  c.batch = ids.size(0);
  c.queries = c.keys = ids.size(1);
  c.causal = decoder_;
  c.positions = false;
  c.eager = eager;
  c.dtype = embedded.dtype();
  if (!decoder_) c.padding = padding;
  T5Pass pass;
  pass.encoded = encoded;
  pass.mask = make_mask(session, c);
  if (decoder_) {
    c.causal = false;
    c.keys = encoded.size(1);
    c.padding = padding;
    pass.cross_mask = make_mask(session, c);
  }
  Tensor hidden = dropout(embedded, config_.dropout);
  T5Biases biases;
  for (const T5Block& block : blocks_) hidden = run(block, hidden, pass, biases);
  hidden = norm_(hidden);
  hidden = dropout(hidden, config_.dropout);
  return hidden;
}

}  // namespace memfathom
