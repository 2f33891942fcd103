// Vision transformer: transformers' ViT, DeiT, ViT-MSN and I-JEPA by their config.json.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/encoder_layer.h"
#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_network.h"
#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/patch_embedding.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

EncoderConfig read_plan(const Node& config) {
  EncoderConfig defaults;
  defaults.hidden = 768;
  defaults.layers = 12;
  defaults.heads = 12;
  defaults.ffn = 3072;
  EncoderConfig cfg = read_encoder_config(config, defaults);
  cfg.dropout = probability_or(config, {"hidden_dropout_prob"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_probs_dropout_prob"}, 0);
  cfg.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.names = {"attention", "o_proj", "layernorm_before", "layernorm_after"};
  return cfg;
}

struct Vit {
  ModelSettings settings;
  Tensor class_token, distillation_token, positions;
  Layer patches;
  std::vector<EncoderLayer> layers;
  LayerNorm norm;
  Linear head;
  bool pools = false;
  bool averages = false;  // I-JEPA: has no token of the sample; the classes are those of the mean
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
    const Tensor first = averages ? mean(sequence, {1}, false) : select(sequence, 1, 0);
    Tensor output = head(first);
    return pools ? activate(Activation::kTanh, output) : output;
  }

 private:
  Tensor embedded(const Tensor& image) const {
    Tensor x = patches(image);
    x = transpose(flatten(x, 2), 1, 2);
    std::vector<Tensor> parts;
    for (const Tensor& token : {class_token, distillation_token}) {
      if (token) parts.push_back(expand(token, {x.size(0), 1, x.size(2)}));
    }
    if (!parts.empty()) {
      parts.push_back(x);
      x = cat(parts, 1);
      parts.clear();
    }
    x = add(x, positions);
    return memfathom::dropout(x, dropout);
  }
};

}  // namespace

// The image classifier; ViTModel with its pooler where `architectures` names it.
std::unique_ptr<Network> make_vision_transformer(Builder& builder, const Node& config,
                                                 const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  const EncoderConfig cfg = read_plan(config);
  const ConfigExtent image = extent_or(config, "image_size", 224);
  const ConfigExtent patch = extent_or(config, "patch_size", 16);
  require_config_size(config, settings, image);
  const std::int64_t channels = count_or(config, {"num_channels"}, 3);
  const std::int64_t count = (image.height / patch.height) * (image.width / patch.width);
  auto vit = std::make_shared<Vit>();
  vit->settings = settings;
  vit->averages = type == "ijepa";
  vit->dropout = settings.dropout.value_or(cfg.dropout);
  {
    const PathScope scope(builder, type == "deit" || type == "ijepa" ? type : "vit");
    const Shape token{1, 1, cfg.hidden};
    if (!vit->averages) vit->class_token = builder.parameter("embeddings.cls_token", token);
    if (type == "deit")
      vit->distillation_token = builder.parameter("embeddings.distillation_token", token);
    const std::int64_t places =
        count + (vit->class_token ? 1 : 0) + (vit->distillation_token ? 1 : 0);
    vit->positions = builder.parameter("embeddings.position_embeddings", {1, places, cfg.hidden});
    vit->patches = patch_embedding({builder, settings}, "embeddings.patch_embeddings.projection",
                                   channels, cfg.hidden, patch);
    vit->layers = make_encoder_layers(builder, "layers", cfg, settings);
    vit->norm = make_layer_norm(builder, "layernorm", cfg.hidden);
  }
  vit->pools = is_architecture(config, "ViTModel");
  const HeadScope head(builder);
  const std::int64_t outputs =
      vit->pools ? count_or(config, {"pooler_output_size"}, cfg.hidden) : label_count(config, 2);
  vit->head = make_linear(builder, vit->pools ? "pooler.dense" : "classifier", cfg.hidden, outputs,
                          {.head = true});
  return make_image_network(builder.session(), settings,
                            [vit](const Tensor& x) { return (*vit)(x); },
                            {{channels, image.height, image.width},
                             {outputs},
                             vit->pools ? LossKind::kMean : LossKind::kCrossEntropy});
}

}  // namespace memfathom
