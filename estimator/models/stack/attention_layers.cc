// Layers of attention: with and without projections, packed, whole blocks, rotary embedding.
#include <fmt/format.h>

#include "core/error.h"
#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/self_attention.h"
#include "kernels/framework/layers/transformer_block.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

AttentionImplementation implementation_of(const StackContext& context, const Node& spec) {
  const Node* node = spec.find("implementation");
  if (node == nullptr) return context.settings.attention;
  const std::optional<AttentionImplementation> known = parse_attention(node->as_string());
  if (!known) node->refuse("it must be eager, efficient, flash, math or sdpa");
  return *known;
}

std::int64_t heads_of(const Node& spec, std::int64_t hidden) {
  const std::int64_t heads = extent_of(spec, "heads");
  if (hidden % heads != 0)
    spec.at("heads").refuse(fmt::format("it must divide the hidden size {}", hidden));
  return heads;
}

Layer attention_layer(StackContext& context, const Node& spec) {
  const std::int64_t hidden = extent_of(spec, "hidden");
  const std::int64_t heads = heads_of(spec, hidden);
  if (!flag_or(spec, "projections", true)) {
    CoreAttention core;
    core.heads = heads;
    core.implementation = implementation_of(context, spec);
    core.causal = flag_or(spec, "causal", false);
    core.padding_mask = spec.find("mask") != nullptr && spec.at("mask").as_choice({"padding"}) == 0;
    core.dropout = fraction_or(spec, "dropout", 0);
    context.shape = {context.shape[0], heads, context.shape[1], hidden / heads};
    return [core](const Tensor& x) { return core(x); };
  }
  SelfAttentionOptions options;
  options.hidden = hidden;
  options.heads = heads;
  options.kv_heads = extent_or(spec, "kv_heads", heads);
  if (heads % options.kv_heads != 0)
    spec.at("kv_heads").refuse(fmt::format("it must divide the {} heads", heads));
  options.implementation = implementation_of(context, spec);
  options.causal = flag_or(spec, "causal", true);
  options.bias = flag_or(spec, "bias", false);
  options.dropout = fraction_or(spec, "dropout", 0);
  const PathScope scope(context.builder, "attention");
  const SelfAttention layer = make_self_attention(context.builder, options);
  return [layer](const Tensor& x) { return layer(x); };
}

Layer multihead_layer(StackContext& context, const Node& spec) {
  const std::int64_t hidden = extent_of(spec, "hidden");
  const PathScope scope(context.builder, "multihead_attention");
  MultiheadAttention layer =
      make_multihead_attention(context.builder, hidden, heads_of(spec, hidden));
  layer.dropout = fraction_or(spec, "dropout", 0);
  layer.need_weights = flag_or(spec, "need_weights", false);
  layer.implementation = implementation_of(context, spec);
  return [layer](const Tensor& x) { return layer(x); };
}

Layer block_layer(StackContext& context, const Node& spec) {
  TransformerBlockOptions options;
  const std::optional<BlockStyle> style = parse_block_style(spec.at("style").as_string());
  if (!style) spec.at("style").refuse("it must be gpt2, llama, vit, dit, bert or torch");
  options.style = *style;
  options.hidden = extent_of(spec, "hidden");
  options.heads = heads_of(spec, options.hidden);
  options.kv_heads = extent_or(spec, "kv_heads", options.heads);
  options.inner = extent_or(spec, "ffn", 4 * options.hidden);
  options.activation = options.style == BlockStyle::kTorch ? Activation::kRelu : Activation::kGelu;
  if (const Node* name = spec.find("activation")) {
    const std::optional<Activation> known = parse_activation(name->as_string());
    if (!known) name->refuse("it must be an activation such as gelu, relu or silu");
    options.activation = *known;
  }
  options.dropout = fraction_or(spec, "dropout", 0);
  options.norm_first = flag_or(spec, "norm_first", false);
  options.implementation = implementation_of(context, spec);
  const PathScope scope(context.builder, "block");
  const auto block = std::make_shared<TransformerBlock>(context.builder, options);
  return [block](const Tensor& x) { return (*block)(x); };
}

// The tables lie with the batch, one row per position, in the input's type.
Layer rope_layer(StackContext& context, const Node& spec) {
  const std::int64_t heads = heads_of(spec, context.shape[-1]);
  const std::int64_t length = context.shape[1];
  const std::int64_t size = context.shape[-1] / heads;
  Session& session = context.builder.session();
  const ComponentScope scope(session, Component::kInputs);
  const Tensor cos = session.zeros({1, 1, length, size}, context.settings.precision);
  const Tensor sin = session.zeros({1, 1, length, size}, context.settings.precision);
  context.shape = {context.shape[0], heads, length, size};
  return [=](const Tensor& x) {
    const Tensor q = transpose(view(x, {x.size(0), x.size(1), heads, size}), 1, 2);
    // As the formula is usually written: the rotated half has a name and outlives the products.
    Tensor rotated;
    {
      const Tensor halves[] = {neg(slice(q, -1, size / 2, size)), slice(q, -1, 0, size / 2)};
      rotated = cat(halves, -1);
    }
    const Tensor plain = mul(q, cos);
    const Tensor turned = mul(rotated, sin);
    return add(plain, turned);
  };
}

}  // namespace

const std::vector<LayerType>& attention_layer_types() {
  static const std::vector<LayerType> kTypes{
      {"attention",
       {"hidden", "heads", "kv_heads", "implementation", "projections", "bias", "causal", "dropout",
        "mask"},
       attention_layer},
      {"multihead_attention",
       {"hidden", "heads", "implementation", "dropout", "need_weights"},
       multihead_layer},
      {"transformer_block",
       {"style", "hidden", "heads", "kv_heads", "ffn", "activation", "dropout", "implementation",
        "norm_first"},
       block_layer},
      {"rope", {"heads"}, rope_layer},
  };
  return kTypes;
}

}  // namespace memfathom
