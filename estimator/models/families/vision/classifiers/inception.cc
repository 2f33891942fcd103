// GoogLeNet and Inception v3 as torchvision has them, with their auxiliary classifiers.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr double kEps = 0.001;

struct Kernel {
  std::int64_t height, width;
};
constexpr Kernel kOne{1, 1}, kThree{3, 3}, kFive{5, 5}, kRow7{1, 7}, kColumn7{7, 1}, kRow3{1, 3},
    kColumn3{3, 1};

// One convolution of a branch; `padded` keeps the image's size.
struct Step {
  std::string_view name;
  std::int64_t out;
  Kernel kernel = kOne;
  std::int64_t stride = 1;
  bool padded = true;
};

// Convolution without bias, batch norm, ReLU in place.
Layer unit(const ImageContext& context, std::int64_t in, const Step& step) {
  const PathScope scope(context.builder, step.name);
  ConvSpec cfg{.in = in, .out = step.out, .kernel = step.kernel.height, .stride = step.stride};
  cfg.kernel_width = step.kernel.width;
  cfg.padding = step.padded ? step.kernel.height / 2 : 0;
  cfg.padding_width = step.padded ? step.kernel.width / 2 : 0;
  return sequential({conv_layer(context, "conv", cfg),
                     batch_norm_layer(context, "bn", step.out, kEps),
                     activation_layer(Activation::kRelu)});
}

Layer chain(const ImageContext& context, std::int64_t in, const std::vector<Step>& steps,
            Layer before = {}) {
  std::vector<Layer> layers;
  if (before) layers.push_back(std::move(before));
  for (const Step& step : steps) {
    layers.push_back(unit(context, in, step));
    in = step.out;
  }
  return sequential(std::move(layers));
}

Layer joined(std::vector<Layer> branches) {
  return [branches = std::move(branches)](const Tensor& x) {
    std::vector<Tensor> parts;
    for (const Layer& branch : branches) parts.push_back(branch(x));
    return cat(parts, 1);
  };
}

// A branch that splits in two at its end.
Layer forked(const ImageContext& context, std::int64_t in, const std::vector<Step>& steps,
             const Step& left, const Step& right) {
  const std::int64_t width = steps.back().out;
  Layer stem = chain(context, in, steps);
  Layer fork = joined({unit(context, width, left), unit(context, width, right)});
  return sequential({std::move(stem), std::move(fork)});
}

Layer averaged() { return average_pool_layer(3, 1, 1); }

Layer inception_a(const ImageContext& c, std::int64_t in, std::int64_t pooled) {
  return joined({chain(c, in, {{"branch1x1", 64}}),
                 chain(c, in, {{"branch5x5_1", 48}, {"branch5x5_2", 64, kFive}}),
                 chain(c, in,
                       {{"branch3x3dbl_1", 64},
                        {"branch3x3dbl_2", 96, kThree},
                        {"branch3x3dbl_3", 96, kThree}}),
                 chain(c, in, {{"branch_pool", pooled}}, averaged())});
}

Layer inception_b(const ImageContext& c, std::int64_t in) {
  return joined({chain(c, in, {{"branch3x3", 384, kThree, 2, false}}),
                 chain(c, in,
                       {{"branch3x3dbl_1", 64},
                        {"branch3x3dbl_2", 96, kThree},
                        {"branch3x3dbl_3", 96, kThree, 2, false}}),
                 max_pool_layer(3, 2)});
}

Layer inception_c(const ImageContext& c, std::int64_t in, std::int64_t width) {
  return joined(
      {chain(c, in, {{"branch1x1", 192}}),
       chain(
           c, in,
           {{"branch7x7_1", width}, {"branch7x7_2", width, kRow7}, {"branch7x7_3", 192, kColumn7}}),
       chain(c, in,
             {{"branch7x7dbl_1", width},
              {"branch7x7dbl_2", width, kColumn7},
              {"branch7x7dbl_3", width, kRow7},
              {"branch7x7dbl_4", width, kColumn7},
              {"branch7x7dbl_5", 192, kRow7}}),
       chain(c, in, {{"branch_pool", 192}}, averaged())});
}

Layer inception_d(const ImageContext& c, std::int64_t in) {
  return joined({chain(c, in, {{"branch3x3_1", 192}, {"branch3x3_2", 320, kThree, 2, false}}),
                 chain(c, in,
                       {{"branch7x7x3_1", 192},
                        {"branch7x7x3_2", 192, kRow7},
                        {"branch7x7x3_3", 192, kColumn7},
                        {"branch7x7x3_4", 192, kThree, 2, false}}),
                 max_pool_layer(3, 2)});
}

Layer inception_e(const ImageContext& c, std::int64_t in) {
  return joined({chain(c, in, {{"branch1x1", 320}}),
                 forked(c, in, {{"branch3x3_1", 384}}, {"branch3x3_2a", 384, kRow3},
                        {"branch3x3_2b", 384, kColumn3}),
                 forked(c, in, {{"branch3x3dbl_1", 448}, {"branch3x3dbl_2", 384, kThree}},
                        {"branch3x3dbl_3a", 384, kRow3}, {"branch3x3dbl_3b", 384, kColumn3}),
                 chain(c, in, {{"branch_pool", 192}}, averaged())});
}

// The network around its blocks: what an auxiliary classifier makes of the image at its place is
// added to the output in training, as scripts add the losses.
struct Inception {
  struct Part {
    Layer block, auxiliary;  // the auxiliary classifier reads what the block gives
  };
  Layer stem;
  std::vector<Part> parts;
  double dropout = 0, weight = 0.3;
  Linear head;

  Tensor operator()(const Tensor& image) const {
    Tensor x = stem(image);
    std::vector<Tensor> auxiliary;
    for (const Part& part : parts) {
      x = part.block(x);
      if (part.auxiliary && x.session().training) auxiliary.push_back(part.auxiliary(x));
    }
    x = global_average(x);
    x = memfathom::dropout(x, dropout);
    x = head(x);
    for (const Tensor& logits : auxiliary) x = add(x, logits, weight);
    return x;
  }
};

// One block with the name of its module.
template <typename Make>
Inception::Part block(const ImageContext& context, std::string_view name, Make make) {
  const PathScope scope(context.builder, name);
  return {block_layer(context, make()), {}};
}

struct GoogLeNetBlock {
  const char* name;
  std::int64_t in, one, three_in, three, five_in, five, pooled;
};

Layer googlenet_block(const ImageContext& context, const GoogLeNetBlock& b) {
  return joined({chain(context, b.in, {{"branch1", b.one}}),
                 chain(context, b.in, {{"branch2.0", b.three_in}, {"branch2.1", b.three, kThree}}),
                 chain(context, b.in, {{"branch3.0", b.five_in}, {"branch3.1", b.five, kThree}}),
                 chain(context, b.in, {{"branch4.1", b.pooled}}, max_pool_layer(3, 1, 1, true))});
}

Layer googlenet_auxiliary(const ImageContext& context, std::string_view name, std::int64_t in,
                          std::int64_t classes) {
  const PathScope scope(context.builder, name);
  const Layer conv = unit(context, in, {"conv", 128});
  const Linear first = make_linear(context.builder, "fc1", 2048, 1024);
  const HeadScope head(context.builder);
  const Linear second = make_linear(context.builder, "fc2", 1024, classes);
  const double p = context.dropout(0.7);
  return [=](const Tensor& image) {
    Tensor x = adaptive_average_pool(image, {4, 4});
    x = flatten(conv(x), 1);
    x = first(x);
    activate_in_place(Activation::kRelu, x);
    x = dropout(x, p);
    return second(x);
  };
}

Layer inception_auxiliary(const ImageContext& context, std::int64_t in, std::int64_t classes) {
  const PathScope scope(context.builder, "AuxLogits");
  const Layer pool = average_pool_layer(5, 3);
  const Layer convs = chain(context, in, {{"conv0", 128}, {"conv1", 768, kFive, 1, false}});
  const HeadScope head(context.builder);
  const Linear last = make_linear(context.builder, "fc", 768, classes);
  return [=](const Tensor& image) {
    Tensor x = pool(image);
    x = convs(x);
    x = global_average(x);
    return last(x);
  };
}

// Pooling between blocks belongs to the block before it.
void append(Inception::Part& part, Layer layer) {
  part.block = sequential({std::move(part.block), std::move(layer)});
}

}  // namespace

Layer make_googlenet(const ImageContext& context, std::int64_t classes) {
  static constexpr GoogLeNetBlock kBlocks[] = {
      {"inception3a", 192, 64, 96, 128, 16, 32, 32},
      {"inception3b", 256, 128, 128, 192, 32, 96, 64},
      {"inception4a", 480, 192, 96, 208, 16, 48, 64},
      {"inception4b", 512, 160, 112, 224, 24, 64, 64},
      {"inception4c", 512, 128, 128, 256, 24, 64, 64},
      {"inception4d", 512, 112, 144, 288, 32, 64, 64},
      {"inception4e", 528, 256, 160, 320, 32, 128, 128},
      {"inception5a", 832, 256, 160, 320, 32, 128, 128},
      {"inception5b", 832, 384, 192, 384, 48, 128, 128},
  };
  auto net = std::make_shared<Inception>();
  net->dropout = context.dropout(0.2);
  net->stem = sequential({unit(context, 3, {"conv1", 64, {7, 7}, 2}), max_pool_layer(3, 2, 0, true),
                          chain(context, 64, {{"conv2", 64}, {"conv3", 192, kThree}}),
                          max_pool_layer(3, 2, 0, true)});
  for (const GoogLeNetBlock& b : kBlocks)
    net->parts.push_back(block(context, b.name, [&] { return googlenet_block(context, b); }));
  append(net->parts[1], max_pool_layer(3, 2, 0, true));
  append(net->parts[6], max_pool_layer(2, 2, 0, true));
  net->parts[2].auxiliary = googlenet_auxiliary(context, "aux1", 512, classes);
  net->parts[5].auxiliary = googlenet_auxiliary(context, "aux2", 528, classes);
  const HeadScope head(context.builder);
  net->head = make_linear(context.builder, "fc", 1024, classes, {.head = true});
  return [net](const Tensor& x) { return (*net)(x); };
}

Layer make_inception_v3(const ImageContext& context, std::int64_t classes) {
  auto net = std::make_shared<Inception>();
  net->dropout = context.dropout(0.5);
  net->weight = 0.4;
  net->stem = sequential(
      {chain(context, 3,
             {{"Conv2d_1a_3x3", 32, kThree, 2, false},
              {"Conv2d_2a_3x3", 32, kThree, 1, false},
              {"Conv2d_2b_3x3", 64, kThree}}),
       max_pool_layer(3, 2),
       chain(context, 64, {{"Conv2d_3b_1x1", 80}, {"Conv2d_4a_3x3", 192, kThree, 1, false}}),
       max_pool_layer(3, 2)});
  const auto add_block = [&](std::string_view name, auto make) {
    net->parts.push_back(block(context, name, make));
  };
  add_block("Mixed_5b", [&] { return inception_a(context, 192, 32); });
  add_block("Mixed_5c", [&] { return inception_a(context, 256, 64); });
  add_block("Mixed_5d", [&] { return inception_a(context, 288, 64); });
  add_block("Mixed_6a", [&] { return inception_b(context, 288); });
  add_block("Mixed_6b", [&] { return inception_c(context, 768, 128); });
  add_block("Mixed_6c", [&] { return inception_c(context, 768, 160); });
  add_block("Mixed_6d", [&] { return inception_c(context, 768, 160); });
  add_block("Mixed_6e", [&] { return inception_c(context, 768, 192); });
  net->parts.back().auxiliary = inception_auxiliary(context, 768, classes);
  add_block("Mixed_7a", [&] { return inception_d(context, 768); });
  add_block("Mixed_7b", [&] { return inception_e(context, 1280); });
  add_block("Mixed_7c", [&] { return inception_e(context, 2048); });
  const HeadScope head(context.builder);
  net->head = make_linear(context.builder, "fc", 2048, classes, {.head = true});
  return [net](const Tensor& x) { return (*net)(x); };
}

}  // namespace memfathom
