// DINOv2: transformers' image encoder, with or without registers, by its config.json.
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
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

EncoderConfig read_plan(const Node& config) {
  EncoderConfig cfg =
      read_encoder_config(config, {.hidden = 768, .layers = 12, .heads = 12, .ffn = 3072});
  const auto inner = static_cast<std::int64_t>(static_cast<double>(cfg.hidden) *
                                               number_or(config, {"mlp_ratio"}, 4));
  cfg.gated = flag_or(config, {"use_swiglu_ffn"}, false);
  // Two thirds, since there are three matrices, and a multiple of 8.
  cfg.ffn = cfg.gated ? (inner * 2 / 3 + 7) / 8 * 8 : inner;
  cfg.attention_dropout = probability_or(config, {"attention_probs_dropout_prob"}, 0);
  cfg.drop_path = probability_or(config, {"drop_path_rate"}, 0);
  cfg.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  cfg.layer_scale = true;
  cfg.softmax_in_fp32 = false;
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.names = {"attention", "o_proj", "norm1", "norm2"};
  return cfg;
}

// Bicubic, in fp32: [1, dim, from, from] to [1, dim, height, width], where the channels lie next to
// each other.
Tensor resized(const Tensor& table, std::int64_t height, std::int64_t width) {
  const Tensor wide = to_dtype(table, DType::kFp32);
  Session& session = table.session();
  Recording tape(session, "upsample_bicubic2d", {&wide});
  const Shape shape{1, table.size(1), height, width};
  Tensor out = session.empty_strided(shape, channels_last_strides(shape), DType::kFp32);
  tape.finish(out, [from = wide.shape()](Backward& b) {
    b.give(0, b.session().empty(from, DType::kFp32));
  });
  return to_dtype(out, table.dtype());
}

struct Dino {
  ModelSettings settings;
  Tensor class_token, positions, registers;
  Layer patches;
  std::vector<EncoderLayer> layers;
  LayerNorm norm;
  Linear head;  // without weights: the tokens themselves
  double dropout = 0;
  std::int64_t rows = 0, columns = 0;  // of the table

  Tensor operator()(const Tensor& image) const {
    Tensor sequence;
    {
      Tensor embedding = embedded(image);
      prepare_image_embeddings(settings, embedding);
      Tensor hidden = embedding;
      const Pass pass;
      for (const EncoderLayer& layer : layers) hidden = run_block(settings, layer, hidden, pass);
      sequence = norm(hidden);
    }
    if (!head.weight) return sequence;
    const std::int64_t first = 1 + (registers ? registers.size(1) : 0);
    const Tensor parts[] = {select(sequence, 1, 0),
                            mean(slice(sequence, 1, first, sequence.size(1)), {1}, false)};
    const Tensor both = cat(parts, 1);
    return head(both);
  }

 private:
  Tensor embedded(const Tensor& image) const {
    Tensor x = patches(image);
    const std::int64_t height = x.size(2);
    const std::int64_t width = x.size(3);
    x = transpose(flatten(x, 2), 1, 2);
    x = joined({expand(class_token, {x.size(0), 1, x.size(2)}), x});
    x = add(x, positions_for(height, width));
    if (registers) {
      const Shape shape{x.size(0), registers.size(1), x.size(2)};
      x = joined({slice(x, 1, 0, 1), expand(registers, shape), slice(x, 1, 1, x.size(1))});
    }
    return memfathom::dropout(x, dropout);
  }

  static Tensor joined(const std::vector<Tensor>& parts) { return cat(parts, 1); }

  Tensor positions_for(std::int64_t height, std::int64_t width) const {
    if (height * width == rows * columns && height == width) return positions;
    const std::int64_t size = positions.size(2);
    const Tensor own = slice(positions, 1, 0, 1);
    Tensor others = reshape(slice(positions, 1, 1, positions.size(1)), {1, rows, columns, size});
    others = resized(permute(others, {0, 3, 1, 2}), height, width);
    return joined({own, reshape(permute(others, {0, 2, 3, 1}), {1, height * width, size})});
  }
};

}  // namespace

// model_type dinov2 or dinov2_with_registers: the image classifier where `architectures` names it,
// else the tokens. Images may have another size than the config says: the positions are
// interpolated.
std::unique_ptr<Network> make_dinov2(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  const bool registered = config.at("model_type").as_string() == "dinov2_with_registers";
  const EncoderConfig cfg = read_plan(config);
  const ConfigExtent table = extent_or(config, "image_size", 224);
  const ConfigExtent patch = extent_or(config, "patch_size", registered ? 16 : 14);
  const ConfigExtent image =
      settings.image_height > 0 ? ConfigExtent{settings.image_height, settings.image_width} : table;
  if (image.height < patch.height || image.width < patch.width)
    config.refuse("its patches are larger than the images of training.image_size");
  const std::int64_t channels = count_or(config, {"num_channels"}, 3);
  auto dino = std::make_shared<Dino>();
  dino->settings = settings;
  dino->dropout = settings.dropout.value_or(probability_or(config, {"hidden_dropout_prob"}, 0));
  dino->rows = table.height / patch.height;
  dino->columns = table.width / patch.width;
  const Shape one{1, 1, cfg.hidden};
  dino->class_token = builder.parameter("embeddings.cls_token", one);
  if (registered || flag_or(config, {"use_mask_token"}, true))
    builder.parameter("embeddings.mask_token", {1, cfg.hidden});
  dino->positions = builder.parameter("embeddings.position_embeddings",
                                      {1, dino->rows * dino->columns + 1, cfg.hidden});
  if (registered)
    dino->registers =
        builder.parameter("embeddings.register_tokens",
                          {1, count_or(config, {"num_register_tokens"}, 4), cfg.hidden});
  dino->patches = patch_embedding({builder, settings}, "embeddings.patch_embeddings.projection",
                                  channels, cfg.hidden, patch);
  dino->layers = make_encoder_layers(builder, "encoder.layer", cfg, settings);
  dino->norm = make_layer_norm(builder, "layernorm", cfg.hidden);
  const std::int64_t tokens = 1 + (dino->registers ? dino->registers.size(1) : 0) +
                              (image.height / patch.height) * (image.width / patch.width);
  ImageTask task{{channels, image.height, image.width}, {tokens, cfg.hidden}, LossKind::kMean};
  if (is_architecture(config, "ForImageClassification")) {
    const HeadScope head(builder);
    const std::int64_t labels = label_count(config, 2);
    dino->head = make_linear(builder, "classifier", 2 * cfg.hidden, labels, {.head = true});
    task.output = {labels};
    task.loss = LossKind::kCrossEntropy;
  }
  return make_image_network(
      builder.session(), settings, [dino](const Tensor& x) { return (*dino)(x); }, task);
}

}  // namespace memfathom
