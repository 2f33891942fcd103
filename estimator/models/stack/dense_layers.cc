// Layers over features: linear, activations, norms of rows, embeddings, feed-forward parts, casts.
#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/feed_forward.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::int64_t features(const StackContext& context, const Node& spec, std::string_view key) {
  return extent_or(spec, key, context.shape[-1]);
}

Layer linear_layer(StackContext& context, const Node& spec) {
  const std::int64_t out = extent_of(spec, "out");
  const Linear layer = make_linear(context.builder, "linear", features(context, spec, "in"), out,
                                   {.bias = flag_or(spec, "bias", true)});
  context.shape[-1] = out;
  return [layer](const Tensor& x) { return layer(x); };
}

Layer activation_layer(StackContext&, const Node& spec) {
  const Activation activation = *parse_activation(spec.at("type").as_string());
  if (!flag_or(spec, "inplace", false))
    return [activation](const Tensor& x) { return activate(activation, x); };
  return [activation](const Tensor& x) {
    Tensor changed = x;
    activate_in_place(activation, changed);
    return changed;
  };
}

Layer prelu_layer(StackContext& context, const Node&) {
  const Tensor weight = context.builder.parameter("prelu.weight", {1});
  return [weight](const Tensor& x) { return prelu(x, weight); };
}

Layer softmax_layer(StackContext&, const Node& spec) {
  const bool log = spec.at("type").as_string() == "log_softmax";
  const bool wide =
      spec.find("precision") != nullptr && spec.at("precision").as_dtype() == DType::kFp32;
  return [log, wide](const Tensor& x) {
    if (log) return log_softmax(x);
    if (!wide) return softmax(x);
    const Tensor y = softmax_fp32(x);
    return to_dtype(y, x.dtype());
  };
}

Layer dropout_layer(StackContext& context, const Node& spec) {
  const double p = context.settings.dropout.value_or(fraction_or(spec, "p", 0.5));
  if (!flag_or(spec, "inplace", false)) return [p](const Tensor& x) { return dropout(x, p); };
  return [p](const Tensor& x) {
    Tensor changed = x;
    dropout_in_place(changed, p);
    return changed;
  };
}

Layer layer_norm_layer(StackContext& context, const Node& spec) {
  const LayerNorm norm =
      make_layer_norm(context.builder, "layer_norm", features(context, spec, "features"));
  return [norm](const Tensor& x) { return norm(x); };
}

Layer rms_norm_layer(StackContext& context, const Node& spec) {
  const Node* implementation = spec.find("implementation");
  const bool python =
      implementation != nullptr && implementation->as_choice({"torch", "python"}) == 1;
  const RmsNorm norm =
      make_rms_norm(context.builder, "rms_norm", features(context, spec, "features"), python);
  return [norm](const Tensor& x) { return norm(x); };
}

Layer embedding_layer(StackContext& context, const Node& spec) {
  const std::int64_t size = extent_of(spec, "size");
  const Tensor table =
      context.builder.parameter("embedding.weight", {extent_of(spec, "vocab"), size});
  context.shape.push_back(size);
  return [table](const Tensor& x) { return embedding(table, x); };
}

Layer position_embedding_layer(StackContext& context, const Node& spec) {
  const Tensor table = context.builder.parameter(
      "position_embedding.weight",
      {extent_or(spec, "length", context.shape[1]), features(context, spec, "size")});
  return [table](const Tensor& x) {
    const Tensor rows = slice(table, 0, 0, x.size(1));
    return add(x, rows);
  };
}

// Its activation has a weight, so it is no Mlp.
Layer prelu_mlp(StackContext& context, std::int64_t hidden, std::int64_t inner) {
  const Linear up = make_linear(context.builder, "up", hidden, inner);
  const Tensor slope = context.builder.parameter("prelu.weight", {1});
  const Linear down = make_linear(context.builder, "down", inner, hidden);
  return [up, slope, down](const Tensor& x) {
    Tensor t = up(x);
    t = prelu(t, slope);
    return down(t);
  };
}

Layer mlp_layer(StackContext& context, const Node& spec) {
  const PathScope scope(context.builder, "mlp");
  const std::int64_t hidden = features(context, spec, "hidden");
  Activation activation = Activation::kGelu;
  if (const Node* name = spec.find("activation")) {
    if (name->as_string() == "prelu") return prelu_mlp(context, hidden, extent_of(spec, "ffn"));
    const std::optional<Activation> known = parse_activation(name->as_string());
    if (!known) name->refuse("it must be an activation such as gelu, relu or silu");
    activation = *known;
  }
  const Mlp mlp = make_mlp(context.builder, hidden, extent_of(spec, "ffn"), activation);
  return [mlp](const Tensor& x) { return mlp(x); };
}

Layer gated_layer(StackContext& context, const Node& spec) {
  const bool swiglu = spec.at("type").as_string() == "swiglu";
  const PathScope scope(context.builder, "mlp");
  const GatedUnit mlp =
      make_gated_unit(context.builder, features(context, spec, "hidden"), extent_of(spec, "ffn"),
                      swiglu ? Activation::kSilu : Activation::kGeluTanh);
  return [mlp](const Tensor& x) { return mlp(x); };
}

Layer flatten_layer(StackContext& context, const Node&) {
  context.shape = {context.shape[0], context.shape.elements() / context.shape[0]};
  return [](const Tensor& x) { return flatten(x, 1); };
}

Layer cast_layer(StackContext&, const Node& spec) {
  const DType dtype = spec.at("dtype").as_dtype();
  return [dtype](const Tensor& x) { return to_dtype(x, dtype); };
}

}  // namespace

const std::vector<LayerType>& dense_layer_types() {
  static const std::vector<LayerType> kTypes = [] {
    std::vector<LayerType> types{
        {"linear", {"in", "out", "bias"}, linear_layer},
        {"prelu", {"inplace"}, prelu_layer},
        {"softmax", {"precision"}, softmax_layer},
        {"log_softmax", {"precision"}, softmax_layer},
        {"dropout", {"p", "inplace"}, dropout_layer},
        {"layer_norm", {"features"}, layer_norm_layer},
        {"rms_norm", {"features", "implementation"}, rms_norm_layer},
        {"embedding", {"vocab", "size"}, embedding_layer},
        {"position_embedding", {"length", "size"}, position_embedding_layer},
        {"mlp", {"hidden", "ffn", "activation"}, mlp_layer},
        {"swiglu", {"hidden", "ffn"}, gated_layer},
        {"geglu", {"hidden", "ffn"}, gated_layer},
        {"flatten", {}, flatten_layer},
        {"cast", {"dtype"}, cast_layer},
    };
    for (const std::string_view name :
         {"relu", "gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "mish", "tanh", "sigmoid",
          "leaky_relu", "elu", "softplus", "selu", "relu6", "hardswish"}) {
      types.push_back({name, {"inplace"}, activation_layer});
    }
    return types;
  }();
  return kTypes;
}

}  // namespace memfathom
