// MLP-Mixer as timm has it: every block mixes the tokens of each channel, then the channels of each
// token.
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct MixerMlp {
  Linear up, down;

  Tensor operator()(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGelu, x);
    return down(x);
  }
};

MixerMlp make_mlp(Builder& builder, std::string_view name, std::int64_t width, std::int64_t inner) {
  const PathScope scope(builder, name);
  MixerMlp mlp;
  mlp.up = make_linear(builder, "fc1", width, inner);
  mlp.down = make_linear(builder, "fc2", inner, width);
  return mlp;
}

struct MixerBlock {
  LayerNorm norm1, norm2;
  MixerMlp tokens, channels;

  Tensor operator()(const Tensor& input) const {
    const Tensor x = add(input, transpose(tokens(transpose(norm1(input), 1, 2)), 1, 2));
    return add(x, channels(norm2(x)));
  }
};

}  // namespace

Layer make_mixer(const ImageContext& context, std::int64_t classes, const VitConfig& cfg) {
  Builder& builder = context.builder;
  const std::int64_t side = cfg.image_size / cfg.patch;
  const Layer patches = conv_layer(
      context, "stem.proj",
      {.in = 3, .out = cfg.width, .kernel = cfg.patch, .stride = cfg.patch, .bias = true});
  std::vector<Layer> blocks;
  for (std::int64_t i = 0; i < cfg.depth; ++i) {
    const PathScope scope(builder, "blocks", i);
    const BlockScope counted(builder, i, cfg.depth);
    MixerBlock block;
    block.norm1 = make_layer_norm(builder, "norm1", cfg.width);
    block.tokens = make_mlp(builder, "mlp_tokens", side * side, cfg.width / 2);
    block.norm2 = make_layer_norm(builder, "norm2", cfg.width);
    block.channels = make_mlp(builder, "mlp_channels", cfg.width, 4 * cfg.width);
    blocks.push_back(block_layer(context, std::move(block)));
  }
  const LayerNorm norm = make_layer_norm(builder, "norm", cfg.width);
  const HeadScope head_scope(builder);
  const Linear head = make_linear(builder, "head", cfg.width, classes, {.head = true});
  return [=](const Tensor& image) {
    Tensor x = patches(image);
    x = transpose(flatten(x, 2), 1, 2);
    x = run_layers(blocks, x);
    x = norm(x);
    x = mean(x, {1}, false);
    return head(x);
  };
}

}  // namespace memfathom
