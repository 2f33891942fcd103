// ConvNeXt and ConvNeXt V2 as transformers writes them, by their config.json.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_network.h"
#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/patch_embedding.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct ConvNextPlan {
  std::vector<std::int64_t> widths, depths;
  std::int64_t channels = 3;
  ConfigExtent image, patch;
  bool second = false;  // V2: responses normalized over the image instead of learnt factors
  bool scaled = true;
  double drop_path = 0;
  Activation activation = Activation::kGelu;
};

std::vector<std::int64_t> counts_or(const Node& config, std::string_view name,
                                    std::vector<std::int64_t> fallback) {
  const Node* given = find_any(config, {name});
  if (given == nullptr) return fallback;
  std::vector<std::int64_t> counts = given->as_ints(1, kMaxWidth);
  if (counts.empty()) given->refuse("it must have a number for each stage");
  return counts;
}

ConvNextPlan read_plan(const Node& config) {
  ConvNextPlan plan;
  plan.second = config.at("model_type").as_string() == "convnextv2";
  plan.widths = counts_or(config, "hidden_sizes", {96, 192, 384, 768});
  plan.depths = counts_or(config, "depths", {3, 3, 9, 3});
  if (plan.widths.size() != plan.depths.size())
    config.refuse("hidden_sizes and depths must have a number for each stage");
  for (const std::int64_t depth : plan.depths) {
    if (depth > kMaxLayers) config.at("depths").refuse("a stage has too many layers");
  }
  plan.channels = count_or(config, {"num_channels"}, 3);
  plan.image = extent_or(config, "image_size", 224);
  plan.patch = extent_or(config, "patch_size", 4);
  plan.scaled = !plan.second && number_or(config, {"layer_scale_init_value"}, 1e-6) > 0;
  plan.drop_path = probability_or(config, {"drop_path_rate"}, 0);
  plan.activation = activation_or(config, {"hidden_act"}, "gelu");
  return plan;
}

// The norm sees the channels last.
Layer channel_norm(Builder& builder, std::string_view name, std::int64_t features) {
  return [norm = make_layer_norm(builder, name, features)](const Tensor& input) {
    Tensor x = permute(input, {0, 2, 3, 1});
    x = norm(x);
    return permute(x, {0, 3, 1, 2});
  };
}

// torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) of [N, H, W, C]
Tensor norm_over_image(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "linalg_vector_norm", {&x});
  tape.save(x);
  Tensor out = session.empty({x.size(0), 1, 1, x.size(3)}, x.dtype());
  tape.save(out);
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor norms = b.saved(1);
    const Tensor ratio = b.session().empty(norms.shape(), norms.dtype());
    b.give(0, b.session().empty(kept.shape(), kept.dtype()));
  });
  return out;
}

// V2's global response normalization.
struct ResponseNorm {
  Tensor weight, bias;

  Tensor operator()(const Tensor& x) const {
    const Tensor features = norm_over_image(x);
    Tensor ratio = mean(features, {-1}, true);
    ratio = add_scalar(ratio, 1e-6);
    ratio = div(features, ratio);
    Tensor response = mul(x, ratio);
    response = mul(weight, response);
    response = add(response, bias);
    return add(response, x);
  }
};

Layer make_layer(const ImageContext& context, const ConvNextPlan& plan, std::int64_t width,
                 double drop) {
  Builder& builder = context.builder;
  const Layer mixed = conv_layer(
      context, "dwconv",
      {.in = width, .out = width, .kernel = 7, .padding = 3, .groups = width, .bias = true});
  const LayerNorm norm = make_layer_norm(builder, "layernorm", width);
  const Linear first = make_linear(builder, "pwconv1", width, 4 * width);
  ResponseNorm response;
  if (plan.second) {
    response.weight = builder.parameter("grn.weight", {1, 1, 1, 4 * width});
    response.bias = builder.parameter("grn.bias", {1, 1, 1, 4 * width});
  }
  const Linear second = make_linear(builder, "pwconv2", 4 * width, width);
  Tensor scale;
  if (plan.scaled) scale = builder.parameter("layer_scale_parameter", {width});
  return [=, activation = plan.activation](const Tensor& x) {
    Tensor features = permute(mixed(x), {0, 2, 3, 1});
    features = norm(features);
    features = first(features);
    features = activate(activation, features);
    if (response.weight) features = response(features);
    features = second(features);
    if (scale) features = mul(scale, features);
    features = permute(features, {0, 3, 1, 2});
    features = stochastic_depth(features, drop);
    return add(x, features);
  };
}

Layer make_stages(const ImageContext& context, const ConvNextPlan& plan) {
  Builder& builder = context.builder;
  std::vector<Layer> layers;
  std::int64_t total = 0;
  for (const std::int64_t depth : plan.depths) total += depth;
  std::int64_t done = 0;
  for (std::size_t stage = 0; stage < plan.widths.size(); ++stage) {
    const PathScope scope(builder, "encoder.stages", static_cast<std::int64_t>(stage));
    const std::int64_t width = plan.widths[stage];
    if (stage > 0) {
      const std::int64_t before = plan.widths[stage - 1];
      layers.push_back(channel_norm(builder, "downsampling_layer.0", before));
      layers.push_back(
          conv_layer(context, "downsampling_layer.1",
                     {.in = before, .out = width, .kernel = 2, .stride = 2, .bias = true}));
    }
    for (std::int64_t i = 0; i < plan.depths[stage]; ++i, ++done) {
      const PathScope layer(builder, "layers", i);
      const BlockScope counted(builder, done, total);
      const double share =
          total > 1 ? static_cast<double>(done) / static_cast<double>(total - 1) : 0;
      layers.push_back(make_layer(context, plan, width, context.dropout(plan.drop_path) * share));
    }
  }
  return sequential(std::move(layers));
}

}  // namespace

std::unique_ptr<Network> make_convnext_model(Builder& builder, const Node& config,
                                             const ModelSettings& settings) {
  refuse_checkpoints(settings, "ConvNeXt");
  ConvNextPlan plan = read_plan(config);
  if (!is_architecture(config, "ForImageClassification"))
    config.refuse(
        "of ConvNeXt only the image classifier is modelled (architectures: "
        "[ConvNextForImageClassification]); record others with memfathom capture");
  if (settings.image_height > 0) plan.image = {settings.image_height, settings.image_width};
  const ImageContext context{builder, settings};
  const PathScope scope(builder, plan.second ? "convnextv2" : "convnext");
  const std::int64_t last = plan.widths.back();
  std::vector<Layer> layers;
  layers.push_back(patch_embedding(context, "embeddings.patch_embeddings", plan.channels,
                                   plan.widths.front(), plan.patch));
  layers.push_back(channel_norm(builder, "embeddings.layernorm", plan.widths.front()));
  layers.push_back(make_stages(context, plan));
  const LayerNorm norm = make_layer_norm(builder, "layernorm", last);
  const HeadScope head(builder);
  const std::int64_t labels = label_count(config, 2);
  const Linear classifier = make_linear(builder, "classifier", last, labels, {.head = true});
  layers.emplace_back([norm, classifier](const Tensor& x) {
    const Tensor pooled = norm(mean(x, {-2, -1}, false));
    return classifier(pooled);
  });
  return make_image_network(
      builder.session(), settings, sequential(std::move(layers)),
      {{plan.channels, plan.image.height, plan.image.width}, {labels}, LossKind::kCrossEntropy});
}

}  // namespace memfathom
