// DINOv3: transformers' image encoder with rotated patches and registers, by its config.json.
#include <memory>
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
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

EncoderConfig read_plan(const Node& config) {
  EncoderConfig cfg =
      read_encoder_config(config, {.hidden = 384, .layers = 12, .heads = 6, .ffn = 1536});
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.drop_path = probability_or(config, {"drop_path_rate"}, 0);
  cfg.qkv_bias = flag_or(config, {"query_bias"}, true);
  cfg.key_bias = flag_or(config, {"key_bias"}, false);
  if (flag_or(config, {"value_bias"}, true) != cfg.qkv_bias)
    config.at("value_bias")
        .refuse(
            "values with another bias than the queries are not modelled; record the "
            "step with memfathom capture");
  cfg.output_bias = flag_or(config, {"proj_bias"}, true);
  cfg.mlp_bias = flag_or(config, {"mlp_bias"}, true);
  cfg.gated = flag_or(config, {"use_gated_mlp"}, false);
  cfg.layer_scale = true;
  cfg.softmax_in_fp32 = false;
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.names = {"attention", "o_proj", "norm1", "norm2"};
  return cfg;
}

struct Dinov3 {
  ModelSettings settings;
  std::int64_t head_size = 0;
  Tensor class_token, registers, frequencies;
  Layer patches;
  std::vector<EncoderLayer> layers;
  LayerNorm norm;

  Tensor operator()(const Tensor& image) const {
    Tensor embedding = embedded(image);
    prepare_image_embeddings(settings, embedding);
    const std::int64_t before = 1 + (registers ? registers.size(1) : 0);
    Pass pass;
    pass.rotary = tables(embedding.size(1) - before, image);
    Tensor hidden = embedding;
    for (const EncoderLayer& layer : layers) hidden = run_block(settings, layer, hidden, pass);
    return norm(hidden);
  }

 private:
  Tensor embedded(const Tensor& image) const {
    const Tensor places = transpose(flatten(patches(image), 2), 1, 2);
    std::vector<Tensor> parts{expand(class_token, {places.size(0), 1, places.size(2)})};
    if (registers)
      parts.push_back(expand(registers, {places.size(0), registers.size(1), places.size(2)}));
    parts.push_back(places);
    return cat(parts, 1);
  }

  // Angles of a patch's height and width, twice.
  RotaryTables tables(std::int64_t count, const Tensor& image) const {
    Session& session = image.session();
    const NoGrad no_grad(session);
    const Shape shape{1, 1, count, head_size};
    const Tensor angles = session.empty(shape, DType::kFp32);
    const Tensor cos = session.empty(shape, DType::kFp32);
    const Tensor sin = session.empty(shape, DType::kFp32);
    return {to_dtype(cos, image.dtype()), to_dtype(sin, image.dtype())};
  }
};

}  // namespace

// Images may have another size than the config says: the angles are computed from the image.
std::unique_ptr<Network> make_dinov3(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  const EncoderConfig cfg = read_plan(config);
  const ConfigExtent usual = extent_or(config, "image_size", 224);
  const ConfigExtent patch = extent_or(config, "patch_size", 16);
  const ConfigExtent image =
      settings.image_height > 0 ? ConfigExtent{settings.image_height, settings.image_width} : usual;
  if (image.height < patch.height || image.width < patch.width)
    config.refuse("its patches are larger than the images of training.image_size");
  const std::int64_t channels = count_or(config, {"num_channels"}, 3);
  const Node* registers = find_any(config, {"num_register_tokens"});
  const std::int64_t register_count = registers != nullptr ? registers->as_int(0, kMaxLayers) : 0;
  auto dino = std::make_shared<Dinov3>();
  dino->settings = settings;
  dino->head_size = cfg.head_size();
  const Shape token{1, 1, cfg.hidden};
  dino->class_token = builder.parameter("embeddings.cls_token", token);
  builder.parameter("embeddings.mask_token", token);
  if (register_count > 0)
    dino->registers =
        builder.parameter("embeddings.register_tokens", {1, register_count, cfg.hidden});
  dino->patches = patch_embedding({builder, settings}, "embeddings.patch_embeddings", channels,
                                  cfg.hidden, patch);
  dino->frequencies =
      builder.buffer("rope_embeddings.inv_freq", {cfg.head_size() / 4}, DType::kFp32, false);
  dino->layers = make_encoder_layers(builder, "model.layer", cfg, settings);
  dino->norm = make_layer_norm(builder, "norm", cfg.hidden);
  const std::int64_t tokens =
      1 + register_count + (image.height / patch.height) * (image.width / patch.width);
  return make_image_network(
      builder.session(), settings, [dino](const Tensor& x) { return (*dino)(x); },
      {{channels, image.height, image.width}, {tokens, cfg.hidden}, LossKind::kMean});
}

}  // namespace memfathom
