// VGGT: a DINOv2 backbone, 24 pairs of frame and global attention blocks, and heads for camera,
// depth and points.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/vision/vggt/dpt_head.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kWidth = 1024, kHeads = 16, kDepth = 24, kPatch = 14, kImage = 518,
                       kRegisters = 4, kPose = 9;
constexpr std::int64_t kFirstPatch = 1 + kRegisters;
constexpr std::int64_t kFramesAtOnce = 8;  // of the dense heads
constexpr std::int64_t kCameraRounds = 4;
constexpr std::array<std::size_t, 4> kHeadLayers{4, 11, 17, 23};

Tensor rotated_half(const Tensor& x) {
  Session& session = x.session();
  const Shape table{x.size(0), 1, x.size(2), x.size(3)};
  const Tensor cos = session.empty(table, x.dtype());
  const Tensor sin = session.empty(table, x.dtype());
  Tensor turned;
  {
    const std::int64_t half = x.size(3) / 2;
    const Tensor parts[] = {neg(slice(x, 3, half, 2 * half)), slice(x, 3, 0, half)};
    turned = cat(parts, 3);
  }
  const Tensor plain = mul(x, cos);
  turned = mul(turned, sin);
  return add(plain, turned);
}

// Rows turn the first half of a head, columns the second.
Tensor rotated(const Tensor& x) {
  const std::vector<Tensor> halves = chunk(x, 2, 3);
  const Tensor parts[] = {rotated_half(halves[0]), rotated_half(halves[1])};
  return cat(parts, 3);
}

struct VggtBlockConfig {
  std::int64_t width = kWidth;
  bool norms_heads = false, rotates = false;
};

struct VggtBlock {
  VggtBlockConfig cfg;
  LayerNorm norm1, norm2, q_norm, k_norm;
  Linear qkv, projection, up, down;
  Tensor scale1, scale2;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Tensor operator()(const Tensor& input) const {
    Tensor t = norm1(input);
    t = attended(t);
    t = mul(t, scale1);
    const Tensor x = add(input, t);
    t.reset();
    t = norm2(x);
    t = feed_forward(t);
    t = mul(t, scale2);
    return add(x, t);
  }

 private:
  Tensor attended(const Tensor& input) const {
    const std::int64_t batch = input.size(0), length = input.size(1);
    const Tensor packed = permute(
        reshape(qkv(input), {batch, length, 3, kHeads, cfg.width / kHeads}), {2, 0, 3, 1, 4});
    const std::vector<Tensor> parts = unbind(packed, 0);
    Tensor q = parts[0];
    Tensor k = parts[1];
    if (cfg.norms_heads) {
      q = q_norm(q);
      k = k_norm(k);
    }
    if (cfg.rotates) {
      q = rotated(q);
      k = rotated(k);
    }
    AttentionOptions options;
    options.implementation = implementation;
    options.causal = false;
    Tensor x = scaled_dot_product_attention(q, k, parts[2], options);
    x = reshape(transpose(x, 1, 2), {batch, length, -1});
    return projection(x);
  }

  Tensor feed_forward(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGelu, x);
    return down(x);
  }
};

Layer make_block(const ImageContext& context, const VggtBlockConfig& cfg) {
  Builder& builder = context.builder;
  const std::int64_t width = cfg.width;
  VggtBlock block;
  block.cfg = cfg;
  block.implementation = context.settings.attention;
  block.norm1 = make_layer_norm(builder, "norm1", width);
  block.qkv = make_linear(builder, "attn.qkv", width, 3 * width);
  if (cfg.norms_heads) {
    block.q_norm = make_layer_norm(builder, "attn.q_norm", width / kHeads);
    block.k_norm = make_layer_norm(builder, "attn.k_norm", width / kHeads);
  }
  block.projection = make_linear(builder, "attn.proj", width, width);
  block.scale1 = builder.parameter("ls1.gamma", {width});
  block.norm2 = make_layer_norm(builder, "norm2", width);
  block.up = make_linear(builder, "mlp.fc1", width, 4 * width);
  block.down = make_linear(builder, "mlp.fc2", 4 * width, width);
  block.scale2 = builder.parameter("ls2.gamma", {width});
  return block_layer(context, block);
}

std::vector<Layer> make_blocks(const ImageContext& context, std::string_view name,
                               std::int64_t count, const VggtBlockConfig& cfg) {
  std::vector<Layer> blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    const PathScope scope(context.builder, name, i);
    blocks.push_back(make_block(context, cfg));
  }
  return blocks;
}

class Vggt final : public Network {
 public:
  Vggt(Builder& builder, const Node& model, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings) {
    height_ = settings.image_height > 0 ? settings.image_height : kImage;
    width_ = settings.image_width > 0 ? settings.image_width : kImage;
    frames_ = std::max<std::int64_t>(settings.num_frames, 1);
    if (height_ % kPatch != 0 || width_ % kPatch != 0) {
      model.refuse(
          fmt::format("training.image_size must be a multiple of {} for this model; its own is {}",
                      kPatch, kImage));
    }
    const ImageContext context{builder, settings_};
    make_aggregator(context);
    make_camera(context);
    points_ = DptHead(context, "point_head", 2 * kWidth, 4);
    depth_ = DptHead(context, "depth_head", 2 * kWidth, 2);
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&images_, &target_pose_, &target_depth_, &target_points_});
    const DType dtype = settings_.precision;
    images_ = session_.zeros({size, frames_, 3, height_, width_}, dtype);
    if (!targets) return;
    target_pose_ = session_.zeros({size, frames_, kPose}, dtype);
    target_depth_ = session_.zeros({size * frames_, height_, width_, 1}, dtype);
    target_points_ = session_.zeros({size * frames_, height_, width_, 3}, dtype);
  }

  Tensor loss(Tensor* output) override {
    const Predictions made = predict();
    if (output != nullptr) *output = made.points;
    const ComponentScope scope(session_, Component::kLogitsLoss);
    Tensor total = pair_loss(PairLoss::kL1, made.depth, target_depth_);
    for (const Tensor& pose : made.poses)
      total = add(total, pair_loss(PairLoss::kL1, pose, target_pose_));
    return add(total, pair_loss(PairLoss::kL1, made.points, target_points_));
  }

  // All predictions stay alive until the next pass, as the dictionary that the model returns keeps
  // them.
  Tensor forward() override {
    held_ = {};
    held_ = predict();
    return held_.points;
  }

 private:
  struct Predictions {
    std::vector<Tensor> poses;  // of every round: each has its loss
    Tensor depth, depth_confidence, points, point_confidence;
  };

  void make_aggregator(const ImageContext& context) {
    Builder& builder = context.builder;
    const PathScope scope(builder, "aggregator");
    {
      const PathScope dino(builder, "patch_embed");
      const std::int64_t side = kImage / kPatch;
      class_token_ = builder.parameter("cls_token", {1, 1, kWidth});
      positions_ = builder.parameter("pos_embed", {1, side * side + 1, kWidth});
      dino_registers_ = builder.parameter("register_tokens", {1, kRegisters, kWidth});
      builder.parameter("mask_token", {1, kWidth});
      patches_ =
          conv_layer(context, "patch_embed.proj",
                     {.in = 3, .out = kWidth, .kernel = kPatch, .stride = kPatch, .bias = true});
      dino_ = make_blocks(context, "blocks", kDepth, {});
      dino_norm_ = make_layer_norm(builder, "norm", kWidth);
    }
    const VggtBlockConfig cfg{kWidth, true, true};
    frame_blocks_ = make_blocks(context, "frame_blocks", kDepth, cfg);
    global_blocks_ = make_blocks(context, "global_blocks", kDepth, cfg);
    camera_token_ = builder.parameter("camera_token", {1, 2, 1, kWidth});
    register_token_ = builder.parameter("register_token", {1, 2, kRegisters, kWidth});
    mean_ = builder.buffer("_resnet_mean", {1, 1, 3, 1, 1}, builder.options().dtype, false);
    std_ = builder.buffer("_resnet_std", {1, 1, 3, 1, 1}, builder.options().dtype, false);
  }

  void make_camera(const ImageContext& context) {
    constexpr std::int64_t kWide = 2 * kWidth;
    Builder& builder = context.builder;
    const PathScope scope(builder, "camera_head");
    empty_pose_ = builder.parameter("empty_pose_tokens", {1, 1, kPose});
    trunk_ = make_blocks(context, "trunk", 4, {kWide, false, false});
    token_norm_ = make_layer_norm(builder, "token_norm", kWide);
    trunk_norm_ = make_layer_norm(builder, "trunk_norm", kWide);
    embed_pose_ = make_linear(builder, "embed_pose", kPose, kWide);
    modulation_ = make_linear(builder, "poseLN_modulation.1", kWide, 3 * kWide);
    pose_up_ = make_linear(builder, "pose_branch.fc1", kWide, kWide / 2);
    pose_down_ = make_linear(builder, "pose_branch.fc2", kWide / 2, kPose);
  }

  // One token row for the first view, one for all others.
  Tensor special(const Tensor& token, std::int64_t batch) const {
    const std::int64_t count = token.size(2);
    const Tensor first = expand(slice(token, 1, 0, 1), {batch, 1, count, kWidth});
    if (frames_ == 1) return reshape(first, {batch, count, kWidth});
    const Tensor parts[] = {first,
                            expand(slice(token, 1, 1, 2), {batch, frames_ - 1, count, kWidth})};
    return reshape(cat(parts, 1), {batch * frames_, count, kWidth});
  }

  Tensor backbone(const Tensor& images) const {
    Tensor x = patches_(images);
    x = transpose(flatten(x, 2), 1, 2);
    {
      const Tensor parts[] = {expand(class_token_, {x.size(0), 1, kWidth}), x};
      x = cat(parts, 1);
    }
    // The table is interpolated where the image has another size.
    const Tensor table = x.size(1) == positions_.size(1)
                             ? positions_
                             : session_.empty({1, x.size(1), kWidth}, x.dtype());
    x = add(x, table);
    {
      const Tensor parts[] = {slice(x, 1, 0, 1),
                              expand(dino_registers_, {x.size(0), kRegisters, kWidth}),
                              slice(x, 1, 1, x.size(1))};
      x = cat(parts, 1);
    }
    x = run_layers(dino_, x);
    x = dino_norm_(x);
    return slice(x, 1, kFirstPatch, x.size(1));
  }

  // The concatenated frame and global tokens of every pair of blocks, all of which the heads are
  // handed.
  std::vector<Tensor> aggregated() const {
    const std::int64_t batch = images_.size(0);
    Tensor tokens;
    {
      Tensor images = sub(images_, mean_);
      images = div(images, std_);
      images = reshape(images, {batch * frames_, 3, height_, width_});
      const Tensor patches = backbone(images);
      const Tensor parts[] = {special(camera_token_, batch), special(register_token_, batch),
                              patches};
      tokens = cat(parts, 1);
    }
    const std::int64_t count = tokens.size(1);
    std::vector<Tensor> layers;
    for (std::size_t i = 0; i < frame_blocks_.size(); ++i) {
      tokens = view(tokens, {batch * frames_, count, kWidth});
      tokens = frame_blocks_[i](tokens);
      const Tensor frame = view(tokens, {batch, frames_, count, kWidth});
      tokens = view(tokens, {batch, frames_ * count, kWidth});
      tokens = global_blocks_[i](tokens);
      const Tensor parts[] = {frame, view(tokens, {batch, frames_, count, kWidth})};
      layers.push_back(cat(parts, -1));
    }
    return layers;
  }

  std::vector<Tensor> camera(const Tensor& tokens) const {
    const Tensor pose_tokens = token_norm_(select(tokens, 2, 0));
    std::vector<Tensor> poses;
    for (std::int64_t round = 0; round < kCameraRounds; ++round) {
      Tensor t =
          embed_pose_(round > 0 ? poses.back().detach()
                                : expand(empty_pose_, {pose_tokens.size(0), frames_, kPose}));
      t = activate(Activation::kSilu, t);
      const std::vector<Tensor> parts = chunk(modulation_(t), 3, -1);
      t = layer_norm(pose_tokens, {}, {}, 1e-6);
      t = mul(t, add_scalar(parts[1], 1));
      t = add(t, parts[0]);
      t = mul(parts[2], t);
      t = add(t, pose_tokens);
      t = run_layers(trunk_, t);
      t = trunk_norm_(t);
      t = pose_up_(t);
      t = activate(Activation::kGelu, t);
      t = pose_down_(t);
      poses.push_back(round > 0 ? add(poses.back().detach(), t) : t);
    }
    return poses;
  }

  // The dense heads look at eight frames at a time.
  Tensor dense(const DptHead& head, const std::vector<Tensor>& layers) const {
    std::vector<Tensor> maps;
    for (std::int64_t begin = 0; begin < frames_; begin += kFramesAtOnce) {
      const std::int64_t end = std::min(begin + kFramesAtOnce, frames_);
      std::vector<Tensor> tokens;
      for (const std::size_t layer : kHeadLayers) {
        Tensor x = slice(layers[layer], 2, kFirstPatch, layers[layer].size(2));
        if (frames_ > kFramesAtOnce) x = slice(x, 1, begin, end);
        tokens.push_back(reshape(x, {x.size(0) * x.size(1), x.size(2), x.size(3)}));
      }
      maps.push_back(head(tokens, height_, width_));
    }
    return maps.size() == 1 ? maps[0] : cat(maps, 0);
  }

  Predictions predict() const {
    const std::vector<Tensor> layers = aggregated();
    // The heads run in fp32 whatever the backbone's autocast is.
    const AutocastScope full(session_, std::nullopt);
    Predictions out;
    out.poses = camera(layers.back());
    {
      const Tensor map = permute(dense(depth_, layers), {0, 2, 3, 1});
      out.depth = exp(slice(map, 3, 0, 1));
      out.depth_confidence = confidence(map, 1);
    }
    const Tensor map = permute(dense(points_, layers), {0, 2, 3, 1});
    out.points = spread(slice(map, 3, 0, 3));
    out.point_confidence = confidence(map, 3);
    return out;
  }

  static Tensor confidence(const Tensor& map, int channel) {
    const Tensor t = exp(select(map, 3, channel));
    return add_scalar(t, 1);
  }

  // sign(x) * (exp(|x|) - 1)
  static Tensor spread(const Tensor& x) {
    const Tensor sign = x.session().empty(x.shape(), x.dtype());
    Tensor t = absolute(x);
    t = exp(t);
    return mul(sign, t);
  }

  Session& session_;
  ModelSettings settings_;
  std::int64_t height_ = 0, width_ = 0, frames_ = 1;
  Tensor class_token_, positions_, dino_registers_, camera_token_, register_token_, mean_, std_,
      empty_pose_;
  Layer patches_;
  std::vector<Layer> dino_, frame_blocks_, global_blocks_, trunk_;
  LayerNorm dino_norm_, token_norm_, trunk_norm_;
  Linear embed_pose_, modulation_, pose_up_, pose_down_;
  DptHead points_, depth_;
  Tensor images_, target_pose_, target_depth_, target_points_;
  Predictions held_;
};

}  // namespace

// num_frames views of image_size (518, a multiple of 14) per sample. The track head is left out,
// since training and reconstruction without query points never run it; the losses are plain L1
// distances.
std::unique_ptr<Network> make_vggt(Builder& builder, const Node& model,
                                   const ModelSettings& settings) {
  return std::make_unique<Vggt>(builder, model, settings);
}

}  // namespace memfathom
