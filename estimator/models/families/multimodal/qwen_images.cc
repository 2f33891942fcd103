#include "estimator/models/families/multimodal/qwen_images.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "estimator/models/blocks/gather_rows.h"
#include "estimator/models/families/multimodal/qwen_block.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kNeighbours = 4;  // rows of the table that a patch's place is mixed from
constexpr std::int64_t kMostCalls = 1024;

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

Merger make_merger(Builder& builder, const QwenVisionPlan& plan, bool joined) {
  const bool newer = plan.positions > 0;
  Merger made;
  made.width = plan.hidden * plan.unit();
  made.norms_joined = joined;
  made.norm =
      make_norm(builder, newer ? "norm" : "ln_q", plan.norm, joined ? made.width : plan.hidden);
  made.first = make_linear(builder, newer ? "linear_fc1" : "mlp.0", made.width, made.width);
  made.second = make_linear(builder, newer ? "linear_fc2" : "mlp.2", made.width, plan.output);
  return made;
}

class QwenImages final : public ImageSource {
 public:
  QwenImages(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()),
        settings_(settings),
        plan_(read_qwen_vision(config)),
        grid_(read_qwen_grid(plan_, settings)) {
    const BesideLanguageScope beside(builder);
    const PathScope scope(builder, "model.visual");
    const FrozenScope frozen(builder, settings.frozen.vision);
    weight_ =
        builder.parameter("patch_embed.proj.weight",
                          {plan_.hidden, plan_.channels, plan_.frames, plan_.patch, plan_.patch});
    if (plan_.patch_bias) bias_ = builder.parameter("patch_embed.proj.bias", {plan_.hidden});
    if (plan_.positions > 0)
      table_ = builder.parameter("pos_embed.weight", {plan_.positions, plan_.hidden});
    for (const char* name : {"inv_freq", "original_inv_freq"})
      builder.buffer(name, {plan_.head_size() / 4}, DType::kFp32, false);
    blocks_.reserve(static_cast<std::size_t>(plan_.layers));
    for (std::int64_t i = 0; i < plan_.layers; ++i) {
      const PathScope block(builder, "blocks", i);
      const BlockScope counted(builder, i, plan_.layers, plan_.hidden);
      blocks_.emplace_back(builder, plan_, settings);
    }
    const FrozenScope frozen_merger(builder, settings.frozen.projector);
    {
      const PathScope last(builder, "merger");
      merger_ = make_merger(builder, plan_, false);
    }
    for (std::size_t i = 0; i < plan_.deeper.size(); ++i) {
      const PathScope deeper(builder, "deepstack_merger_list", static_cast<std::int64_t>(i));
      deeper_.push_back(make_merger(builder, plan_, true));
    }
  }

  std::int64_t tokens() const override {
    return pictures_of_one() * grid_.patches() / plan_.unit();
  }
  bool counts_in_three() const override { return true; }

  void load(std::int64_t samples) override {
    const std::int64_t pictures = samples * pictures_of_one();
    if (pictures == 0) return;
    const BatchScope scope(session_, {&pixels_});
    const std::int64_t values = plan_.channels * plan_.frames * plan_.patch * plan_.patch;
    const Tensor all = session_.zeros({pictures, grid_.patches(), values}, settings_.precision);
    pixels_ = view(all, {-1, values});
    set_lengths(pictures);
  }

  ShownImages show() override {
    Pass pass;
    Tensor order;
    Tensor hidden = embedded();
    if (plan_.window > 0) {
      order = session_.empty({hidden.size(0) / plan_.unit()}, DType::kInt64);
      hidden = reordered(hidden, order);
    }
    pass.rotary = tables(hidden.size(0));
    ShownImages shown;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      blocks_[i].see(is_in(plan_.whole, index) || plan_.window == 0 ? whole_ : windows_);
      hidden = run_block(settings_, blocks_[i], hidden, pass);
      if (is_in(plan_.deeper, index)) shown.deeper.push_back(deeper_[shown.deeper.size()](hidden));
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
  static bool is_in(const std::vector<std::int64_t>& list, std::int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  std::int64_t pictures_of_one() const { return settings_.num_images.value_or(0); }

  // So many pictures that a call for each would take longer than it tells are seen in one.
  void set_lengths(std::int64_t pictures) {
    const std::vector<std::int64_t> one =
        plan_.window > 0 ? window_lengths(plan_, grid_) : std::vector<std::int64_t>{};
    const std::vector<std::int64_t> together{pictures * grid_.patches()};
    whole_ = together;
    windows_ = together;
    if (pictures <= kMostCalls) whole_.assign(static_cast<std::size_t>(pictures), grid_.patches());
    if (pictures > kMostCalls || pictures * static_cast<std::int64_t>(one.size()) > kMostCalls)
      return;
    windows_.clear();
    for (std::int64_t i = 0; i < pictures; ++i)
      windows_.insert(windows_.end(), one.begin(), one.end());
  }

  Tensor embedded() const {
    const Shape each{plan_.frames, plan_.patch, plan_.patch};
    ConvolutionOptions options;
    options.stride = each;
    options.padding = {0, 0, 0};
    options.dilation = {1, 1, 1};
    const Tensor x = view(pixels_, {-1, plan_.channels, plan_.frames, plan_.patch, plan_.patch});
    Tensor hidden = view(convolution(x, weight_, bias_, options), {-1, plan_.hidden});
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
    const Tensor groups = reshape(x, {order.size(0), plan_.unit(), x.size(1)});
    return reshape(gather_rows(groups, order), {x.size(0), x.size(1)});
  }

  RotaryTables tables(std::int64_t patches) const {
    const NoGrad no_grad(session_);
    const Shape shape{1, patches, plan_.head_size()};
    return {session_.empty(shape, DType::kFp32), session_.empty(shape, DType::kFp32)};
  }

  Session& session_;
  ModelSettings settings_;
  QwenVisionPlan plan_;
  QwenGrid grid_;
  Tensor weight_, bias_, table_;
  std::vector<QwenVisionBlock> blocks_;
  Merger merger_;
  std::vector<Merger> deeper_;
  std::vector<std::int64_t> whole_, windows_;  // of all pictures of a batch
  Tensor pixels_;
};

}  // namespace

std::unique_ptr<ImageSource> make_qwen_images(Builder& builder, const Node& config,
                                              const ModelSettings& settings) {
  return std::make_unique<QwenImages>(builder, config, settings);
}

}  // namespace memfathom
