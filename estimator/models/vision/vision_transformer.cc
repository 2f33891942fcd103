#include "estimator/models/vision/vision_transformer.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "estimator/models/language/config_reader.h"
#include "estimator/models/vision/encoder_layer.h"
#include "estimator/models/vision/image_network.h"
#include "estimator/models/vision/image_parts.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMostPixels = 1 << 20;
constexpr std::int64_t kMostLabels = std::int64_t{1} << 24;

EncoderPlan read_plan(const Node& config) {
  EncoderPlan defaults;
  defaults.hidden = 768;
  defaults.layers = 12;
  defaults.heads = 12;
  defaults.ffn = 3072;
  EncoderPlan plan = read_encoder_plan(config, defaults);
  plan.dropout = probability_or(config, {"hidden_dropout_prob"}, 0);
  plan.attention_dropout = probability_or(config, {"attention_probs_dropout_prob"}, 0);
  plan.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  plan.activation = activation_or(config, {"hidden_act"}, "gelu");
  plan.names = {"attention", "o_proj", "layernorm_before", "layernorm_after"};
  return plan;
}

struct Vit {
  ModelSettings settings;
  Tensor class_token, positions;
  Layer patches;
  std::vector<EncoderLayer> layers;
  LayerNorm norm;
  Linear head;
  bool pools = false;
  double dropout = 0;

  Tensor operator()(const Tensor& image) const {
    Tensor embedding = embedded(image);
    prepare_image_embeddings(settings, embedding);
    Tensor hidden = embedding;
    const Pass pass;
    for (const EncoderLayer& layer : layers) hidden = run_block(settings, layer, hidden, pass);
    const Tensor sequence = norm(hidden);
    embedding.reset();
    hidden.reset();
    const Tensor first = select(sequence, 1, 0);
    Tensor output = head(first);
    return pools ? activate(Activation::kTanh, output) : output;
  }

 private:
  Tensor embedded(const Tensor& image) const {
    Tensor x = patches(image);
    x = transpose(flatten(x, 2), 1, 2);
    {
      const Tensor parts[] = {expand(class_token, {x.size(0), 1, x.size(2)}), x};
      x = cat(parts, 1);
    }
    x = add(x, positions);
    return memfathom::dropout(x, dropout);
  }
};

}  // namespace

ConfigExtent extent_or(const Node& config, std::string_view name, std::int64_t fallback) {
  const Node* found = find_any(config, {name});
  if (found == nullptr) return {fallback, fallback};
  if (!found->is_list()) {
    const std::int64_t size = found->as_int(1, kMostPixels);
    return {size, size};
  }
  const std::vector<std::int64_t> size = found->as_ints(1, kMostPixels);
  if (size.size() != 2) found->refuse("it must be one number or [height, width]");
  return {size[0], size[1]};
}

bool is_architecture(const Node& config, std::string_view ending) {
  const Node* named = config.find("architectures");
  return named != nullptr && named->is_list() && !named->items().empty() &&
         named->items()[0].is_string() && named->items()[0].as_string().ends_with(ending);
}

std::int64_t label_count(const Node& config, std::int64_t fallback) {
  if (const Node* labels = find_any(config, {"id2label"}); labels != nullptr && labels->is_map())
    fallback = static_cast<std::int64_t>(labels->entries().size());
  return count_or(config, {"num_labels"}, std::max<std::int64_t>(fallback, 1), kMostLabels);
}

void require_config_size(const Node& config, const ModelSettings& settings,
                         const ConfigExtent& image) {
  if (settings.image_height == 0 ||
      (settings.image_height == image.height && settings.image_width == image.width))
    return;
  config.refuse(
      fmt::format("its position table is for images of {} x {}, and training.image_size is {} x "
                  "{}; change image_size of the config, or leave training.image_size out",
                  image.height, image.width, settings.image_height, settings.image_width));
}

std::unique_ptr<Network> make_vision_transformer(Builder& builder, const Node& config,
                                                 const ModelSettings& settings) {
  const EncoderPlan plan = read_plan(config);
  const ConfigExtent image = extent_or(config, "image_size", 224);
  const ConfigExtent patch = extent_or(config, "patch_size", 16);
  require_config_size(config, settings, image);
  const std::int64_t channels = count_or(config, {"num_channels"}, 3);
  const std::int64_t count = (image.height / patch.height) * (image.width / patch.width);
  auto vit = std::make_shared<Vit>();
  vit->settings = settings;
  vit->dropout = settings.dropout.value_or(plan.dropout);
  {
    const PathScope scope(builder, "vit");
    vit->class_token = builder.parameter("embeddings.cls_token", {1, 1, plan.hidden});
    vit->positions =
        builder.parameter("embeddings.position_embeddings", {1, count + 1, plan.hidden});
    vit->patches = conv_layer({builder, settings}, "embeddings.patch_embeddings.projection",
                              {.in = channels,
                               .out = plan.hidden,
                               .kernel = patch.height,
                               .stride = patch.height,
                               .bias = true,
                               .kernel_width = patch.width,
                               .stride_width = patch.width});
    vit->layers = make_encoder_layers(builder, "layers", plan, settings);
    vit->norm = make_layer_norm(builder, "layernorm", plan.hidden);
  }
  vit->pools = is_architecture(config, "ViTModel");
  const HeadScope head(builder);
  const std::int64_t outputs =
      vit->pools ? count_or(config, {"pooler_output_size"}, plan.hidden) : label_count(config, 2);
  vit->head = make_linear(builder, vit->pools ? "pooler.dense" : "classifier", plan.hidden, outputs,
                          {.head = true});
  return make_image_network(builder.session(), settings,
                            [vit](const Tensor& x) { return (*vit)(x); },
                            {{channels, image.height, image.width},
                             {outputs},
                             vit->pools ? LossKind::kMean : LossKind::kCrossEntropy});
}

}  // namespace memfathom
