// BEiT: ViT's blocks with learnt factors, stochastic depth, and position
// biases on the scores of each layer.
#include <memory>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/encoder_layer.h"
#include "estimator/models/blocks/gather_rows.h"
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
  cfg.dropout = probability_or(config, {"hidden_dropout_prob"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_probs_dropout_prob"}, 0);
  cfg.key_bias = false;
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.layer_scale = number_or(config, {"layer_scale_init_value"}, 0.1) > 0;
  cfg.drop_path = probability_or(config, {"drop_path_rate"}, 0.1);
  cfg.drop_path_grows = true;
  cfg.names = {"attention",       "o_proj",   "layernorm_before",
               "layernorm_after", "lambda_1", "lambda_2"};
  if (flag_or(config, {"use_shared_relative_position_bias"}, false))
    config.at("use_shared_relative_position_bias")
        .refuse(
            "position biases that all layers share are not modelled; record the step with "
            "memfathom capture");
  return cfg;
}

// Bilinear: the table's rows as an image, resized even where nothing changes.
Tensor resized(const Tensor& image) {
  Session& session = image.session();
  Recording tape(session, "upsample_bilinear2d", {&image});
  Tensor out = session.empty(image.shape(), image.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor gradient = b.gradient();
    b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
  });
  return out;
}

struct BeitLayer {
  EncoderLayer layer;
  Tensor table;  // [distances, heads]; undefined: no position biases
  std::int64_t rows = 0, columns = 0;

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    if (!table) return layer(x, pass);
    Pass own = pass;
    own.mask = biases();
    return layer(x, own);
  }

 private:
  // [1, heads, tokens, tokens]
  Tensor biases() const {
    Session& session = table.session();
    const std::int64_t heads = table.size(1);
    const std::int64_t between = table.size(0) - 3;  // the others are of the sample's own token
    const std::int64_t tokens = rows * columns + 1;
    Tensor all;
    {
      Tensor image =
          reshape(slice(table, 0, 0, between), {1, 2 * columns - 1, 2 * rows - 1, heads});
      image = resized(permute(image, {0, 3, 1, 2}));
      const Tensor parts[] = {reshape(permute(image, {0, 2, 3, 1}), {between, heads}),
                              slice(table, 0, between, table.size(0))};
      all = cat(parts, 0);
    }
    const Tensor index = session.empty({tokens * tokens}, DType::kInt64);
    const Tensor chosen = view(gather_rows(all, index), {tokens, tokens, heads});
    return unsqueeze(contiguous(permute(chosen, {2, 0, 1})), 0);
  }
};

struct Beit {
  ModelSettings settings;
  Tensor class_token, positions;
  Layer patches;
  std::vector<BeitLayer> layers;
  LayerNorm norm;
  Linear head;
  bool averages = true;
  double dropout = 0;

  Tensor operator()(const Tensor& image) const {
    Tensor pooled;
    {
      Tensor embedding = embedded(image);
      prepare_image_embeddings(settings, embedding);
      Tensor hidden = embedding;
      const Pass pass;
      for (const BeitLayer& layer : layers) hidden = run_block(settings, layer, hidden, pass);
      if (averages) {
        pooled = norm(mean(slice(hidden, 1, 1, hidden.size(1)), {1}, false));
      } else {
        pooled = select(norm(hidden), 1, 0);
      }
    }
    return head(pooled);
  }

 private:
  Tensor embedded(const Tensor& image) const {
    Tensor x = patches(image);
    x = transpose(flatten(x, 2), 1, 2);
    {
      const Tensor parts[] = {expand(class_token, {x.size(0), 1, x.size(2)}), x};
      x = cat(parts, 1);
    }
    if (positions) x = add(x, positions);
    return memfathom::dropout(x, dropout);
  }
};

}  // namespace

std::unique_ptr<Network> make_beit(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  const EncoderConfig cfg = read_plan(config);
  const ConfigExtent image = extent_or(config, "image_size", 224);
  const ConfigExtent patch = extent_or(config, "patch_size", 16);
  require_config_size(config, settings, image);
  if (!is_architecture(config, "ForImageClassification"))
    config.refuse(
        "of BEiT only the image classifier is modelled (architectures: "
        "[BeitForImageClassification]); record others with memfathom capture");
  const std::int64_t channels = count_or(config, {"num_channels"}, 3);
  const std::int64_t rows = image.height / patch.height;
  const std::int64_t columns = image.width / patch.width;
  const bool biased = flag_or(config, {"use_relative_position_bias"}, false);
  auto beit = std::make_shared<Beit>();
  beit->settings = settings;
  beit->dropout = settings.dropout.value_or(cfg.dropout);
  beit->averages = flag_or(config, {"use_mean_pooling"}, true);
  {
    const PathScope scope(builder, "beit");
    const Shape token{1, 1, cfg.hidden};
    beit->class_token = builder.parameter("embeddings.cls_token", token);
    if (flag_or(config, {"use_mask_token"}, false))
      builder.parameter("embeddings.mask_token", token);
    if (flag_or(config, {"use_absolute_position_embeddings"}, false))
      beit->positions =
          builder.parameter("embeddings.position_embeddings", {1, rows * columns + 1, cfg.hidden});
    beit->patches = patch_embedding({builder, settings}, "embeddings.patch_embeddings.projection",
                                    channels, cfg.hidden, patch);
    for (EncoderLayer& layer : make_encoder_layers(builder, "layers", cfg, settings)) {
      BeitLayer made{std::move(layer), {}, rows, columns};
      const PathScope own(builder, "layers", static_cast<std::int64_t>(beit->layers.size()));
      if (biased)
        made.table = builder.parameter("relative_position_bias.relative_position_bias_table",
                                       {(2 * rows - 1) * (2 * columns - 1) + 3, cfg.heads});
      beit->layers.push_back(std::move(made));
    }
    beit->norm =
        make_layer_norm(builder, beit->averages ? "pooler.layernorm" : "layernorm", cfg.hidden);
  }
  const HeadScope head(builder);
  const std::int64_t labels = label_count(config, 2);
  beit->head = make_linear(builder, "classifier", cfg.hidden, labels, {.head = true});
  return make_image_network(
      builder.session(), settings, [beit](const Tensor& x) { return (*beit)(x); },
      {{channels, image.height, image.width}, {labels}, LossKind::kCrossEntropy});
}

}  // namespace memfathom
