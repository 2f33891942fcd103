#include "estimator/models/families/diffusion/video_autoencoder/video_blocks.h"

#include <algorithm>
#include <utility>

#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr double kEps = 1e-6;
constexpr std::int64_t kFrames = 2;  // the dimension of time in [N, C, T, H, W]

// Inputs above 2 GiB (as the library counts: two bytes an element) go through in parts of the time.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 30;

Tensor frames(const Tensor& x, std::int64_t begin, std::int64_t end) {
  return slice(x, kFrames, begin, end);
}

Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  ConvolutionOptions options;
  options.stride = options.dilation = {1, 1, 1};
  options.padding = {0, weight.size(3) / 2, weight.size(4) / 2};
  const std::int64_t parts = x.elements() / kMaxElements + 1;
  if (parts == 1) return convolution(x, weight, bias, options);
  const std::int64_t reach = weight.size(2) - 1;
  const std::int64_t length = x.size(kFrames);
  const std::int64_t step = (length + parts - 1) / parts;
  std::vector<Tensor> outputs;
  for (std::int64_t begin = 0; begin < length; begin += step) {
    const std::int64_t end = std::min(length, begin + step);
    const bool joins = begin > 0 && reach > 0;
    Tensor part = frames(x, joins ? begin - reach : begin, end);
    if (joins) part = contiguous(part);
    outputs.push_back(convolution(part, weight, bias, options));
  }
  return cat(outputs, kFrames);
}

// [N, C, T, H, W] as images [N * T, C, H, W], and back.
Tensor as_images(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3, 4}),
                 {x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}

Tensor as_video(const Tensor& images, std::int64_t batch) {
  return permute(reshape(images, {batch, images.size(0) / batch, images.size(1), images.size(2),
                                  images.size(3)}),
                 {0, 2, 1, 3, 4});
}

Tensor enlarged(const Tensor& x, const Shape& size) {
  return upsample(x, UpsampleMode::kNearest, size);
}

// The first frame of an odd number stands for itself.
bool has_odd_frames(const Tensor& x) { return x.size(kFrames) > 1 && x.size(kFrames) % 2 == 1; }

// Every two frames become one.
Tensor time_halved(const Tensor& x) {
  const std::int64_t batch = x.size(0), channels = x.size(1), length = x.size(2),
                     height = x.size(3), width = x.size(4);
  const PoolOptions pairs{{2}, {2}, {0}, false};
  Tensor rows = reshape(permute(x, {0, 3, 4, 1, 2}), {batch * height * width, channels, length});
  if (length % 2 == 1) {
    const Tensor first = slice(rows, -1, 0, 1);
    Tensor rest = slice(rows, -1, 1, length);
    if (length > 1) rest = average_pool(rest, pairs);
    const Tensor parts[] = {first, rest};
    rows = cat(parts, -1);
  } else {
    rows = average_pool(rows, pairs);
  }
  rows = reshape(rows, {batch, height, width, channels, rows.size(2)});
  return permute(rows, {0, 3, 4, 1, 2});
}

Tensor time_doubled(const Tensor& x) {
  const std::int64_t length = x.size(2), height = 2 * x.size(3), width = 2 * x.size(4);
  if (length == 1) return unsqueeze(enlarged(select(x, kFrames, 0), {height, width}), kFrames);
  if (!has_odd_frames(x)) return enlarged(x, {2 * length, height, width});
  const Tensor first = unsqueeze(enlarged(select(x, kFrames, 0), {height, width}), kFrames);
  const Tensor rest = enlarged(frames(x, 1, length), {2 * (length - 1), height, width});
  const Tensor parts[] = {first, rest};
  return cat(parts, kFrames);
}

}  // namespace

void FrameCaches::advance() {
  before = std::move(now);
  now.clear();
}

Tensor CausalConv::operator()(const Tensor& input, FrameCaches& caches) const {
  const std::int64_t reach = weight.size(2) - 1;
  Tensor x = input;
  if (reach > 0) {
    std::vector<Tensor> parts;
    const auto kept = caches.before.find(this);
    if (kept != caches.before.end()) {
      parts.push_back(kept->second);
    } else {
      parts.assign(static_cast<std::size_t>(reach), frames(input, 0, 1));
    }
    parts.push_back(input);
    x = cat(parts, kFrames);
  }
  // Without a reach in time the library keeps a copy of everything.
  const std::int64_t length = x.size(kFrames);
  caches.now[this] = clone(frames(x, reach > 0 ? length - reach : 0, length));
  return convolved(x, weight, bias);
}

CausalConv make_causal_conv(Builder& builder, std::string_view name, std::int64_t in,
                            std::int64_t out, std::int64_t kernel) {
  const PathScope scope(builder, name);
  CausalConv conv;
  conv.weight = builder.parameter("conv.weight", {out, in, kernel, kernel, kernel});
  conv.bias = builder.parameter("conv.bias", {out});
  return conv;
}

Tensor VideoNorm::operator()(const Tensor& x, const Tensor& latents, FrameCaches& caches) const {
  if (!scale) return norm(x);
  const std::int64_t length = x.size(2), height = x.size(3), width = x.size(4);
  Tensor wide;
  if (has_odd_frames(x)) {
    Tensor parts[] = {frames(latents, 0, 1), frames(latents, 1, latents.size(2))};
    parts[0] = enlarged(parts[0], {1, height, width});
    parts[1] = enlarged(parts[1], {length - 1, height, width});
    wide = cat(parts, kFrames);
  } else {
    wide = enlarged(latents, {length, height, width});
  }
  const Tensor factor = (*scale)(wide, caches);
  const Tensor offset = (*shift)(wide, caches);
  Tensor normed = norm(x);
  normed = mul(normed, factor);
  return add(normed, offset);
}

VideoNorm make_video_norm(Builder& builder, std::string_view name, std::int64_t groups,
                          std::int64_t channels, std::int64_t latents) {
  VideoNorm made;
  if (latents == 0) {
    made.norm = make_group_norm(builder, name, groups, channels);
  } else {
    const PathScope scope(builder, name);
    made.norm = make_group_norm(builder, "norm_layer", groups, channels);
    made.scale = make_causal_conv(builder, "conv_y", latents, channels, 1);
    made.shift = make_causal_conv(builder, "conv_b", latents, channels, 1);
  }
  made.norm.eps = kEps;
  return made;
}

Tensor VideoResnet::operator()(const Tensor& input, const Tensor& latents,
                               FrameCaches& caches) const {
  Tensor hidden = norm1(input, latents, caches);
  hidden = activate(Activation::kSilu, hidden);
  hidden = conv1(hidden, caches);
  hidden = norm2(hidden, latents, caches);
  hidden = activate(Activation::kSilu, hidden);
  hidden = memfathom::dropout(hidden, dropout);
  hidden = conv2(hidden, caches);
  const Tensor beside = shortcut_weight ? convolved(input, shortcut_weight, shortcut_bias) : input;
  return add(hidden, beside);
}

Tensor VideoStage::operator()(const Tensor& input, const Tensor& latents,
                              FrameCaches& caches) const {
  Tensor x = input;
  for (const std::shared_ptr<const VideoResnet>& resnet : resnets)
    x = (*resnet)(x, latents, caches);
  const std::int64_t batch = x.size(0);
  if (down) {
    static constexpr std::int64_t kPad[] = {0, 1, 0, 1};
    if (changes_time) x = time_halved(x);
    x = pad(x, kPad);
    x = down(as_images(x));
    return as_video(x, batch);
  }
  if (up) {
    if (changes_time) {
      x = time_doubled(x);
    } else {
      x = as_video(enlarged(as_images(x), {2 * x.size(3), 2 * x.size(4)}), batch);
    }
    x = up(as_images(x));
    return as_video(x, batch);
  }
  return x;
}

VideoStage make_video_stage(const ImageContext& context, const VideoStageConfig& cfg) {
  Builder& builder = context.builder;
  VideoStage stage;
  for (std::int64_t i = 0; i < cfg.resnets; ++i) {
    const PathScope scope(builder, "resnets", i);
    const std::int64_t in = i == 0 ? cfg.in : cfg.out;
    auto resnet = std::make_shared<VideoResnet>();
    resnet->dropout = context.dropout(0);
    resnet->norm1 = make_video_norm(builder, "norm1", cfg.groups, in, cfg.latents);
    resnet->norm2 = make_video_norm(builder, "norm2", cfg.groups, cfg.out, cfg.latents);
    resnet->conv1 = make_causal_conv(builder, "conv1", in, cfg.out, 3);
    resnet->conv2 = make_causal_conv(builder, "conv2", cfg.out, cfg.out, 3);
    if (in != cfg.out) {
      resnet->shortcut_weight = builder.parameter("conv_shortcut.weight", {cfg.out, in, 1, 1, 1});
      resnet->shortcut_bias = builder.parameter("conv_shortcut.bias", {cfg.out});
    }
    stage.resnets.push_back(std::move(resnet));
  }
  return stage;
}

}  // namespace memfathom
