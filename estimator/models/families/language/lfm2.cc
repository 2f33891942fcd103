// LFM2: short convolutions in most layers, grouped-query attention in the others, gated MLPs.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/llama/llama_attention.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct Lfm2Config {
  LlamaConfig attention;  // sizes, and what the layers with attention have
  std::int64_t layers = 0, ffn = 0, vocabulary = 0, kernel = 3;
  bool conv_bias = false;
  std::vector<bool> convolved;  // of each layer
};

// Two thirds of what the file says, times a factor, rounded up: as the published models are made.
std::int64_t adjusted_width(const Node& config, std::int64_t width) {
  if (!flag_or(config, {"block_auto_adjust_ff_dim"}, true)) return width;
  width = 2 * width / 3;
  const double factor = number_or(config, {"block_ffn_dim_multiplier"}, 1);
  width = static_cast<std::int64_t>(factor * static_cast<double>(width));
  const std::int64_t multiple = count_or(config, {"block_multiple_of"}, 256);
  return std::max<std::int64_t>((width + multiple - 1) / multiple * multiple, 1);
}

std::vector<bool> read_layers(const Node& config, std::int64_t layers) {
  std::vector<bool> convolved(static_cast<std::size_t>(layers), false);
  if (const Node* types = find_any(config, {"layer_types"})) {
    if (static_cast<std::int64_t>(types->items().size()) < layers)
      types->refuse("it must have an entry for each of num_hidden_layers");
    for (std::size_t i = 0; i < convolved.size(); ++i)
      convolved[i] = types->items()[i].as_string() == "conv";
    return convolved;
  }
  const Node* attending = find_any(config, {"full_attn_idxs"});
  if (attending == nullptr) return convolved;
  std::fill(convolved.begin(), convolved.end(), true);
  for (const Node& item : attending->items())
    convolved[static_cast<std::size_t>(item.as_int(0, layers - 1))] = false;
  return convolved;
}

Lfm2Config read_plan(const Node& config) {
  Lfm2Config cfg;
  LlamaConfig& attention = cfg.attention;
  attention.hidden = required_count(config, {"hidden_size"});
  attention.heads = required_count(config, {"num_attention_heads"});
  attention.kv_heads = count_or(config, {"num_key_value_heads"}, 8);
  require_divides(config, {"num_attention_heads"}, attention.heads, attention.hidden,
                  "hidden_size");
  require_divides(config, {"num_key_value_heads"}, attention.kv_heads, attention.heads,
                  "num_attention_heads");
  attention.head_size = count_or(config, {"head_dim"}, attention.hidden / attention.heads);
  attention.rotary = attention.head_size;
  attention.qk_norm = QkNorm::kPerHead;
  attention.names.output = "out_proj";
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.ffn = adjusted_width(config, required_count(config, {"block_ff_dim", "intermediate_size"}));
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.kernel = count_or(config, {"conv_L_cache"}, 3);
  cfg.conv_bias = flag_or(config, {"conv_bias"}, false);
  cfg.convolved = read_layers(config, cfg.layers);
  return cfg;
}

// out(C * conv(B * x)), where B, C and x are parts of one product.
class ShortConvolution {
 public:
  ShortConvolution(Builder& builder, const Lfm2Config& cfg)
      : hidden_(cfg.attention.hidden), kernel_(cfg.kernel) {
    const PathScope scope(builder, "conv");
    weight_ = builder.parameter("conv.weight", {hidden_, 1, kernel_});
    if (cfg.conv_bias) bias_ = builder.parameter("conv.bias", {hidden_});
    in_ = make_linear(builder, "in_proj", hidden_, 3 * hidden_, {.bias = cfg.conv_bias});
    out_ = make_linear(builder, "out_proj", hidden_, hidden_, {.bias = cfg.conv_bias});
  }

  Tensor operator()(const Tensor& x) const {
    const Tensor product = transpose(in_(x), 1, 2);
    const std::vector<Tensor> parts = chunk(product, 3, 1);
    Tensor hidden = mul(parts[0], parts[2]);
    ConvolutionOptions options;
    options.stride = {1};
    options.padding = {kernel_ - 1};
    options.dilation = {1};
    options.groups = hidden_;
    hidden = slice(convolution(hidden, weight_, bias_, options), 2, 0, x.size(1));
    Tensor gated = mul(parts[1], hidden);
    gated = contiguous(transpose(gated, 1, 2));
    return out_(gated);
  }

 private:
  std::int64_t hidden_, kernel_;
  Tensor weight_, bias_;
  Linear in_, out_;
};

class Lfm2Block {
 public:
  Lfm2Block(Builder& builder, const Lfm2Config& cfg, const AttentionStyle& style, std::size_t index)
      : index_(index) {
    const std::int64_t hidden = cfg.attention.hidden;
    if (cfg.convolved[index]) {
      convolution_.emplace(builder, cfg);
    } else {
      attention_.emplace(builder, cfg.attention, LlamaLayer{}, style);
    }
    {
      const PathScope scope(builder, "feed_forward");
      mlp_.gate = make_linear(builder, "w1", hidden, cfg.ffn, {.bias = false});
      mlp_.up = make_linear(builder, "w3", hidden, cfg.ffn, {.bias = false});
      mlp_.down = make_linear(builder, "w2", cfg.ffn, hidden, {.bias = false});
    }
    operator_norm_ = make_norm(builder, "operator_norm", NormKind::kRms, hidden);
    mlp_norm_ = make_norm(builder, "ffn_norm", NormKind::kRms, hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor weights;  // Python's `_` keeps eager's weights to the end
    Tensor hidden;
    {
      const Tensor normed = operator_norm_(x);
      if (convolution_) {
        hidden = (*convolution_)(normed);
      } else {
        Attended attended = (*attention_)(normed, pass, index_);
        hidden = std::move(attended.output);
        weights = std::move(attended.weights);
      }
    }
    hidden = add(hidden, x);
    Tensor fed;
    {
      const Tensor normed = mlp_norm_(hidden);
      fed = mlp_(normed);
    }
    return add(hidden, fed);
  }

 private:
  std::size_t index_;
  std::optional<ShortConvolution> convolution_;
  std::optional<LlamaAttention> attention_;
  GatedMlp mlp_;
  NormLayer operator_norm_, mlp_norm_;
};

DecoderOutline outline_of(const Lfm2Config& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.attention.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.rotary = cfg.attention.rotary;
  outline.norm = NormKind::kRms;
  outline.tied_by_default = true;
  outline.last_norm = "embedding_norm";
  outline.blocks_are_alike = false;  // attention or a convolution
  return outline;
}

class Lfm2 final : public Decoder<Lfm2Block> {
 public:
  Lfm2(Builder& builder, const Node& config, const ModelSettings& settings, const Lfm2Config& cfg)
      : Decoder(builder, settings, outline_of(cfg)) {
    const AttentionStyle style = attention_style(0, cfg.attention.head_size);
    build(builder, config,
          [&](std::size_t index) { return Lfm2Block(builder, cfg, style, index); });
  }
};

}  // namespace

std::unique_ptr<Network> make_lfm2(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Lfm2>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
