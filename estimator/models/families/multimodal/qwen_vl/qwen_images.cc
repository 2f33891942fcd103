// Qwen's images: the vision towers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL with their mergers.
#include <algorithm>
#include <utility>
#include <vector>

#include "estimator/models/blocks/gather_rows.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/multimodal/qwen_vl/qwen_block.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kNeighbours = 4;  // rows of the table that a patch's place is mixed from
constexpr std::int64_t kMaxCalls = 1024;

// Neighbouring patches as one token of the language model.
struct Merger {
  NormLayer norm;
  Linear first, second;
  std::int64_t width = 0;
  bool norms_joined = false;  // after the patches are joined, not before

  Tensor operator()(const Tensor& patches) const {
    Tensor x = norms_joined ? norm(view(patches, {-1, width})) : norm(patches);
    x = first(view(x, {-1, width}));
    return second(activate(Activation::kGelu, x));
  }
};

Merger make_merger(Builder& builder, const QwenVisionConfig& cfg, bool joined) {
  const bool newer = cfg.positions > 0;
  Merger made;
  made.width = cfg.hidden * cfg.unit();
  made.norms_joined = joined;
  made.norm =
      make_norm(builder, newer ? "norm" : "ln_q", cfg.norm, joined ? made.width : cfg.hidden);
  made.first = make_linear(builder, newer ? "linear_fc1" : "mlp.0", made.width, made.width);
  made.second = make_linear(builder, newer ? "linear_fc2" : "mlp.2", made.width, cfg.output);
  return made;
}

class QwenImages final : public ImageSource {
 public:
  QwenImages(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()),
        settings_(settings),
        config_(read_qwen_vision(config)),
        grid_(read_qwen_grid(config_, settings)) {
    const NonLanguageScope beside(builder);
    const PathScope scope(builder, "model.visual");
    make_tower(builder);
    const FrozenScope frozen(builder, settings.frozen.projector);
    {
      const PathScope last(builder, "merger");
      merger_ = make_merger(builder, config_, false);
    }
    for (std::size_t i = 0; i < config_.deeper.size(); ++i) {
      const PathScope deeper(builder, "deepstack_merger_list", static_cast<std::int64_t>(i));
      deeper_.push_back(make_merger(builder, config_, true));
    }
  }

  std::int64_t tokens() const override {
    return images_per_sample() * grid_.patches() / config_.unit();
  }
  bool has_3d_positions() const override { return true; }

  void load(std::int64_t samples) override {
    const std::int64_t pictures = samples * images_per_sample();
    if (pictures == 0) return;
    const BatchScope scope(session_, {&pixels_});
    const std::int64_t values = config_.channels * config_.frames * config_.patch * config_.patch;
    const Tensor all = session_.zeros({pictures, grid_.patches(), values}, settings_.precision);
    pixels_ = view(all, {-1, values});
    set_lengths(pictures);
  }

  ImageFeatures show() override {
    Pass pass;
    Tensor order;
    Tensor hidden = embedded();
    if (config_.window > 0) {
      order = session_.empty({hidden.size(0) / config_.unit()}, DType::kInt64);
      hidden = reordered(hidden, order);
    }
    pass.rotary = tables(hidden.size(0));
    ImageFeatures shown;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      blocks_[i].see(is_in(config_.whole, index) || config_.window == 0 ? whole_ : windows_);
      hidden = run_block(settings_, blocks_[i], hidden, pass);
      if (is_in(config_.deeper, index))
        shown.deeper.push_back(deeper_[shown.deeper.size()](hidden));
    }
    Tensor merged = merger_(hidden);
    if (order) merged = gather_rows(merged, session_.empty(order.shape(), DType::kInt64));
    shown.held = {hidden, merged};
    const std::int64_t calls = static_cast<std::int64_t>(whole_.size());
    const std::vector<std::int64_t> sizes(whole_.size(), merged.size(0) / calls);
    shown.features = cat(split(merged, sizes, 0), 0);
    return shown;
  }

 private:
  // All but the merger, which is the projector of training.freeze.
  void make_tower(Builder& builder) {
    const FrozenScope frozen(builder, settings_.frozen.vision);
    weight_ = builder.parameter(
        "patch_embed.proj.weight",
        {config_.hidden, config_.channels, config_.frames, config_.patch, config_.patch});
    if (config_.patch_bias) bias_ = builder.parameter("patch_embed.proj.bias", {config_.hidden});
    if (config_.positions > 0)
      table_ = builder.parameter("pos_embed.weight", {config_.positions, config_.hidden});
    for (const char* name : {"inv_freq", "original_inv_freq"})
      builder.buffer(name, {config_.head_size() / 4}, DType::kFp32, false);
    blocks_.reserve(static_cast<std::size_t>(config_.layers));
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const PathScope block(builder, "blocks", i);
      const BlockScope counted(builder, i, config_.layers, config_.hidden);
      blocks_.emplace_back(builder, config_, settings_);
    }
  }

  static bool is_in(const std::vector<std::int64_t>& list, std::int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  std::int64_t images_per_sample() const { return settings_.num_images.value_or(0); }

  // So many images that a call for each would take longer than it tells are seen in one.
  void set_lengths(std::int64_t pictures) {
    const std::vector<std::int64_t> one =
        config_.window > 0 ? window_lengths(config_, grid_) : std::vector<std::int64_t>{};
    const std::vector<std::int64_t> together{pictures * grid_.patches()};
    whole_ = together;
    windows_ = together;
    if (pictures <= kMaxCalls) whole_.assign(static_cast<std::size_t>(pictures), grid_.patches());
    if (pictures > kMaxCalls || pictures * static_cast<std::int64_t>(one.size()) > kMaxCalls)
      return;
    windows_.clear();
    for (std::int64_t i = 0; i < pictures; ++i)
      windows_.insert(windows_.end(), one.begin(), one.end());
  }

  Tensor embedded() const {
    const Shape each{config_.frames, config_.patch, config_.patch};
    ConvolutionOptions options;
    options.stride = each;
    options.padding = {0, 0, 0};
    options.dilation = {1, 1, 1};
    const Tensor x =
        view(pixels_, {-1, config_.channels, config_.frames, config_.patch, config_.patch});
    Tensor hidden = view(convolution(x, weight_, bias_, options), {-1, config_.hidden});
    if (!table_) return hidden;
    const Tensor rows = session_.empty({hidden.size(0), kNeighbours}, DType::kInt64);
    const Tensor shares = session_.empty({hidden.size(0), kNeighbours, 1}, DType::kFp32);
    Tensor places = embedding(table_, rows);
    places = mul(places, shares);
    places = sum(places, {1}, false);
    return add(hidden, to_dtype(places, hidden.dtype()));
  }

  // In the order of the windows.
  Tensor reordered(const Tensor& x, const Tensor& order) const {
    const Tensor groups = reshape(x, {order.size(0), config_.unit(), x.size(1)});
    return reshape(gather_rows(groups, order), {x.size(0), x.size(1)});
  }

  RotaryTables tables(std::int64_t patches) const {
    const NoGrad no_grad(session_);
    const Shape shape{1, patches, config_.head_size()};
    return {session_.empty(shape, DType::kFp32), session_.empty(shape, DType::kFp32)};
  }

  Session& session_;
  ModelSettings settings_;
  QwenVisionConfig config_;
  QwenGrid grid_;
  Tensor weight_, bias_, table_;
  std::vector<QwenVisionBlock> blocks_;
  Merger merger_;
  std::vector<Merger> deeper_;
  std::vector<std::int64_t> whole_, windows_;  // of all images of a batch
  Tensor pixels_;
};

}  // namespace

// `config` is the whole model's. Pictures have the job's image_size.
std::unique_ptr<ImageSource> make_qwen_images(Builder& builder, const Node& config,
                                              std::int64_t /*hidden*/,
                                              const ModelSettings& settings) {
  return std::make_unique<QwenImages>(builder, config, settings);
}

}  // namespace memfathom
