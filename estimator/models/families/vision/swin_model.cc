// Swin Transformer as transformers writes it, by its config.json: attention inside windows, which
// every other block shifts, by the framework's kernels with the position biases as their mask.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/gather_rows.h"
#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_network.h"
#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/patch_embedding.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/fft.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct SwinPlan {
  std::int64_t channels = 3, width = 96, window = 7;
  std::vector<std::int64_t> depths, heads;
  ConfigExtent image, patch;
  double ratio = 4, dropout = 0, attention_dropout = 0, drop_path = 0.1;
  bool qkv_bias = true, absolute = false;
  Activation activation = Activation::kGelu;
};

std::vector<std::int64_t> counts_or(const Node& config, std::string_view name,
                                    std::vector<std::int64_t> fallback) {
  const Node* given = find_any(config, {name});
  if (given == nullptr) return fallback;
  std::vector<std::int64_t> counts = given->as_ints(1, kMaxLayers);
  if (counts.empty() || counts.size() > 16)
    given->refuse("it must have a number for each of at most 16 stages");
  return counts;
}

SwinPlan read_plan(const Node& config, const ModelSettings& settings) {
  SwinPlan plan;
  plan.channels = count_or(config, {"num_channels"}, 3);
  plan.width = count_or(config, {"embed_dim"}, 96);
  plan.window = count_or(config, {"window_size"}, 7, 1024);
  plan.depths = counts_or(config, "depths", {2, 2, 6, 2});
  plan.heads = counts_or(config, "num_heads", {3, 6, 12, 24});
  if (plan.depths.size() != plan.heads.size())
    config.refuse("depths and num_heads must have a number for each stage");
  plan.image = extent_or(config, "image_size", 224);
  if (settings.image_height > 0) plan.image = {settings.image_height, settings.image_width};
  plan.patch = extent_or(config, "patch_size", 4);
  plan.ratio = number_or(config, {"mlp_ratio"}, 4);
  const auto dropout = [&](std::string_view name, double own) {
    return settings.dropout.value_or(probability_or(config, {name}, own));
  };
  plan.dropout = dropout("hidden_dropout_prob", 0);
  plan.attention_dropout = dropout("attention_probs_dropout_prob", 0);
  plan.drop_path = probability_or(config, {"drop_path_rate"}, 0.1);
  plan.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  plan.absolute = flag_or(config, {"use_absolute_embeddings"}, false);
  if (plan.absolute) require_config_size(config, settings, extent_or(config, "image_size", 224));
  plan.activation = activation_or(config, {"hidden_act"}, "gelu");
  return plan;
}

struct Grid {
  std::int64_t height = 0, width = 0;
};

class SwinBlock {
 public:
  SwinBlock(Builder& builder, const SwinPlan& plan, const ModelSettings& settings,
            std::int64_t width, std::int64_t heads, bool shifted, double drop)
      : plan_(plan), heads_(heads), shifted_(shifted), drop_(drop) {
    style_.implementation = settings.attention;
    style_.causal = false;
    style_.dropout = plan.attention_dropout;
    style_.scale = 1;
    const auto inner = static_cast<std::int64_t>(plan.ratio * static_cast<double>(width));
    {
      const PathScope scope(builder, "attention");
      const LinearOptions options{.bias = plan.qkv_bias};
      q_ = make_linear(builder, "q_proj", width, width, options);
      k_ = make_linear(builder, "k_proj", width, width, options);
      v_ = make_linear(builder, "v_proj", width, width, options);
      output_ = make_linear(builder, "o_proj", width, width);
      const PathScope bias(builder, "relative_position_bias");
      const std::int64_t side = 2 * plan.window - 1;
      table_ = builder.parameter("relative_position_bias_table", {side * side, heads});
      const std::int64_t area = plan.window * plan.window;
      index_ = builder.buffer("relative_position_index", {area * area}, DType::kInt64, false);
    }
    first_norm_ = make_layer_norm(builder, "layernorm_before", width);
    second_norm_ = make_layer_norm(builder, "layernorm_after", width);
    up_ = make_linear(builder, "mlp.fc1", width, inner);
    down_ = make_linear(builder, "mlp.fc2", inner, width);
  }

  Tensor operator()(const Tensor& x, const Grid& grid) const {
    Tensor hidden;
    {
      const Tensor attended = attention(first_norm_(x), grid);
      const Tensor kept = stochastic_depth(attended, drop_);
      hidden = add(x, kept);
    }
    Tensor fed;
    {
      const Tensor normed = second_norm_(hidden);
      fed = up_(normed);
      fed = activate(plan_.activation, fed);
      fed = down_(fed);
    }
    fed = dropout(fed, plan_.dropout);
    return add(hidden, stochastic_depth(fed, drop_));
  }

 private:
  // [b, tokens, channels] of an image to the same, each token seeing those of its window.
  Tensor attention(const Tensor& x, const Grid& grid) const {
    const std::int64_t channels = x.size(2);
    const std::int64_t window = plan_.window;
    const auto rounded = [&](std::int64_t n) { return (n + window - 1) / window * window; };
    const Grid padded{rounded(grid.height), rounded(grid.width)};
    // The library pads even where nothing is missing, which copies.
    const std::int64_t pairs[] = {
        0, 0, 0, padded.width - grid.width, 0, padded.height - grid.height};
    const Tensor image = view(x, {x.size(0), grid.height, grid.width, channels});
    const Tensor whole = pairs[3] + pairs[5] > 0 ? pad(image, pairs) : clone(image);
    static constexpr int kPlane[] = {1, 2};
    // One window is the whole image: nothing is shifted.
    const bool shifts = shifted_ && std::min(grid.height, grid.width) > window;
    const std::int64_t rows = padded.height / window;
    const std::int64_t columns = padded.width / window;
    Tensor windows = shifts ? roll(whole, kPlane, false) : whole;
    windows = view(windows, {x.size(0), rows, window, columns, window, channels});
    windows = view(contiguous(transpose(windows, 2, 3)),
                   {x.size(0) * rows * columns, window * window, channels});
    Tensor output = attended_windows(windows, shifts ? rows * columns : 0);
    output = dropout(output, plan_.dropout);
    output = view(output, {x.size(0), rows, columns, window, window, channels});
    output = view(contiguous(transpose(output, 2, 3)),
                  {x.size(0), padded.height, padded.width, channels});
    if (shifts) output = roll(output, kPlane, true);
    if (pairs[3] + pairs[5] > 0)
      output = contiguous(slice(slice(output, 1, 0, grid.height), 2, 0, grid.width));
    return view(output, x.shape());
  }

  // `masked`: windows of an image, where those at its edge hold tokens of both sides; 0: none do.
  Tensor attended_windows(const Tensor& windows, std::int64_t masked) const {
    Tensor mask;
    if (masked > 0) mask = edge_mask(windows, masked);
    const std::int64_t head_size = windows.size(2) / heads_;
    const Tensor q = split_heads(q_(windows), head_size);
    const Tensor k = split_heads(k_(windows), head_size);
    const Tensor v = split_heads(v_(windows), head_size);
    const std::int64_t area = windows.size(1);
    Tensor biases = view(gather_rows(table_, index_), {area, area, heads_});
    biases = unsqueeze(contiguous(permute(biases, {2, 0, 1})), 0);
    Tensor both = biases;
    if (mask) {
      const Tensor expanded =
          windows.session().empty({windows.size(0), 1, area, area}, windows.dtype());
      both = add(biases, expanded);
    }
    Attended attended = attend(style_, q, k, v, both);
    return output_(merge_heads(attended.output));
  }

  static Tensor edge_mask(const Tensor& windows, std::int64_t count) {
    Session& session = windows.session();
    const NoGrad no_grad(session);
    return session.empty({count, windows.size(1), windows.size(1)}, windows.dtype());
  }

  SwinPlan plan_;
  std::int64_t heads_;
  bool shifted_;
  double drop_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_, up_, down_;
  Tensor table_, index_;
  LayerNorm first_norm_, second_norm_;
};

// 2 x 2 patches become one of four times the channels, then twice.
struct Merging {
  LayerNorm norm;
  Linear reduction;

  Tensor operator()(const Tensor& x, const Grid& grid) const {
    const std::int64_t channels = x.size(2);
    Tensor image = view(x, {x.size(0), grid.height, grid.width, channels});
    const std::int64_t pairs[] = {0, 0, 0, grid.width % 2, 0, grid.height % 2};
    if (pairs[3] + pairs[5] > 0) image = pad(image, pairs);
    const std::int64_t rows = image.size(1) / 2;
    const std::int64_t columns = image.size(2) / 2;
    image = view(image, {x.size(0), rows, 2, columns, 2, channels});
    Tensor merged =
        reshape(permute(image, {0, 1, 3, 4, 2, 5}), {x.size(0), rows * columns, 4 * channels});
    merged = norm(merged);
    return reduction(merged);
  }
};

struct Stage {
  std::vector<SwinBlock> blocks;
  std::optional<Merging> merging;
};

struct Swin {
  SwinPlan plan;
  Layer patches;
  LayerNorm embedding_norm, last_norm;
  Tensor positions;
  std::vector<Stage> stages;
  Linear head;

  Tensor operator()(const Tensor& image) const {
    Tensor pooled;
    {
      Tensor x = patches(image);
      Grid grid{x.size(2), x.size(3)};
      x = embedding_norm(transpose(flatten(x, 2), 1, 2));
      if (positions) x = add(x, positions);
      x = dropout(x, plan.dropout);
      const Tensor embedded = x;  // has a name in the model around the encoder
      Tensor as_image;            // the stage's result once more, which the encoder names
      for (const Stage& stage : stages) {
        const Tensor entered = x;  // has a name in the encoder until the stage returns
        for (const SwinBlock& block : stage.blocks) x = block(x, grid);
        if (stage.merging) {
          x = (*stage.merging)(x, grid);
          grid = {(grid.height + 1) / 2, (grid.width + 1) / 2};
        }
        as_image = contiguous(
            permute(view(x, {x.size(0), grid.height, grid.width, x.size(2)}), {0, 3, 1, 2}));
      }
      as_image.reset();
      x = last_norm(x);
      pooled = mean(transpose(x, 1, 2), {-1}, false);
    }
    return head(pooled);
  }
};

void make_stages(Builder& builder, const ModelSettings& settings, Swin& swin) {
  const SwinPlan& plan = swin.plan;
  std::int64_t total = 0;
  for (const std::int64_t depth : plan.depths) total += depth;
  std::int64_t done = 0;
  std::int64_t width = plan.width;
  for (std::size_t i = 0; i < plan.depths.size(); ++i) {
    const PathScope scope(builder, "encoder.layers", static_cast<std::int64_t>(i));
    Stage stage;
    for (std::int64_t j = 0; j < plan.depths[i]; ++j, ++done) {
      const PathScope block(builder, "blocks", j);
      const BlockScope counted(builder, done, total);
      const double drop = plan.drop_path * static_cast<double>(done) /
                          static_cast<double>(std::max<std::int64_t>(total - 1, 1));
      stage.blocks.emplace_back(builder, plan, settings, width, plan.heads[i], j % 2 == 1, drop);
    }
    if (i + 1 < plan.depths.size()) {
      const PathScope merging(builder, "downsample");
      stage.merging.emplace();
      stage.merging->reduction =
          make_linear(builder, "reduction", 4 * width, 2 * width, {.bias = false});
      stage.merging->norm = make_layer_norm(builder, "norm", 4 * width);
      width *= 2;
    }
    swin.stages.push_back(std::move(stage));
  }
}

}  // namespace

std::unique_ptr<Network> make_swin_model(Builder& builder, const Node& config,
                                         const ModelSettings& settings) {
  if (!is_architecture(config, "ForImageClassification"))
    config.refuse(
        "of Swin only the image classifier is modelled (architectures: "
        "[SwinForImageClassification]); record others with memfathom capture");
  if (settings.checkpointing != Checkpointing::kNone)
    config.refuse(
        "transformers checkpoints Swin's blocks inside its stages, which is not "
        "modelled; record the step with memfathom capture");
  auto swin = std::make_shared<Swin>();
  swin->plan = read_plan(config, settings);
  const SwinPlan& plan = swin->plan;
  std::int64_t width = plan.width;
  {
    const PathScope scope(builder, "swin");
    swin->patches = patch_embedding({builder, settings}, "embeddings.patch_embeddings.projection",
                                    plan.channels, width, plan.patch);
    if (plan.absolute)
      swin->positions = builder.parameter(
          "embeddings.position_embeddings",
          {1, (plan.image.height / plan.patch.height) * (plan.image.width / plan.patch.width),
           width});
    swin->embedding_norm = make_layer_norm(builder, "embeddings.norm", width);
    make_stages(builder, settings, *swin);
    for (std::size_t i = 1; i < plan.depths.size(); ++i) width *= 2;
    swin->last_norm = make_layer_norm(builder, "layernorm", width);
  }
  const HeadScope head(builder);
  const std::int64_t labels = label_count(config, 2);
  swin->head = make_linear(builder, "classifier", width, labels, {.head = true});
  return make_image_network(
      builder.session(), settings, [swin](const Tensor& x) { return (*swin)(x); },
      {{plan.channels, plan.image.height, plan.image.width}, {labels}, LossKind::kCrossEntropy});
}

}  // namespace memfathom
