// Classifiers of torchvision and timm by a few keys, in which their presets differ.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_network.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/vision/classifiers/classifiers.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxClasses = std::int64_t{1} << 24;
constexpr std::int64_t kMaxStageBlocks = 1000;
constexpr int kVggStages = 5;

template <std::size_t kCount>
std::array<std::int64_t, kCount> counts(const Node& config, std::string_view key) {
  const Node& node = config.at(key);
  const std::vector<std::int64_t> values = node.as_ints(1, kMaxStageBlocks);
  if (values.size() != kCount) node.refuse(fmt::format("it must be a list of {} numbers", kCount));
  std::array<std::int64_t, kCount> counts{};
  std::copy(values.begin(), values.end(), counts.begin());
  return counts;
}

Layer resnet(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_resnet(context, classes,
                     {flag_or(config, {"bottleneck"}, false), counts<4>(config, "blocks"),
                      count_or(config, {"groups"}, 1), count_or(config, {"width_per_group"}, 64)});
}

// Every stage ends with a pooling.
Layer vgg(const ImageContext& context, const Node& config, std::int64_t classes) {
  constexpr std::array<std::int64_t, kVggStages> kWidths{64, 128, 256, 512, 512};
  const auto convolutions = counts<kVggStages>(config, "convolutions");
  std::vector<std::int64_t> widths;
  for (std::size_t stage = 0; stage < kVggStages; ++stage) {
    widths.insert(widths.end(), static_cast<std::size_t>(convolutions[stage]), kWidths[stage]);
    widths.push_back(0);
  }
  return make_vgg(context, classes, widths, flag_or(config, {"batch_norm"}, false));
}

Layer alexnet(const ImageContext& context, const Node&, std::int64_t classes) {
  return make_alexnet(context, classes);
}

Layer densenet(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_densenet(context, classes,
                       {required_count(config, {"growth_rate"}), required_count(config, {"stem"}),
                        counts<4>(config, "blocks")});
}

Layer squeezenet(const ImageContext& context, const Node& config, std::int64_t classes) {
  static constexpr std::string_view kVersions[] = {"1_0", "1_1"};
  return make_squeezenet(context, classes, config.at("version").as_choice(kVersions) == 0);
}

Layer googlenet(const ImageContext& context, const Node&, std::int64_t classes) {
  return make_googlenet(context, classes);
}

Layer inception_v3(const ImageContext& context, const Node&, std::int64_t classes) {
  return make_inception_v3(context, classes);
}

Layer mobilenet_v2(const ImageContext& context, const Node&, std::int64_t classes) {
  return make_mobilenet_v2(context, classes);
}

Layer mobilenet_v3(const ImageContext& context, const Node& config, std::int64_t classes) {
  static constexpr std::string_view kSizes[] = {"large", "small"};
  return make_mobilenet_v3(context, classes, config.at("size").as_choice(kSizes) == 0);
}

// A factor on the widths or depths of the smallest model.
double factor(const Node& config, std::string_view key) {
  constexpr double kMaxFactor = 100;
  return config.at(key).as_number(0.01, kMaxFactor);
}

Layer efficientnet(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_efficientnet(context, classes,
                           {factor(config, "width"), factor(config, "depth"),
                            probability_or(config, {"dropout"}, EfficientNetConfig{}.dropout)});
}

Layer efficientnet_v2(const ImageContext& context, const Node& config, std::int64_t classes) {
  static constexpr std::string_view kNames[] = {"small", "medium", "large"};
  constexpr EfficientNetSize kSizes[] = {EfficientNetSize::kSmall, EfficientNetSize::kMedium,
                                         EfficientNetSize::kLarge};
  return make_efficientnet_v2(context, classes, kSizes[config.at("size").as_choice(kNames)]);
}

Layer convnext(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_convnext(
      context, classes,
      {required_count(config, {"width"}), required_count(config, {"third_stage"}, kMaxStageBlocks),
       probability_or(config, {"stochastic_depth"}, 0)});
}

Layer swin(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_swin(context, classes,
                   {required_count(config, {"width"}), required_count(config, {"heads"}),
                    required_count(config, {"third_stage"}, kMaxStageBlocks),
                    probability_or(config, {"stochastic_depth"}, 0)});
}

VitConfig vit_config(const Node& config) {
  VitConfig read;
  read.width = required_count(config, {"width"});
  read.depth = required_count(config, {"depth"}, kMaxLayers);
  read.heads = count_or(config, {"heads"}, 1);
  read.patch = required_count(config, {"patch"});
  read.image_size = required_count(config, {"image_size"});
  return read;
}

Layer timm_vit(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_vit(context, classes, vit_config(config));
}

Layer timm_mixer(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_mixer(context, classes, vit_config(config));
}

Layer torchvision_vit(const ImageContext& context, const Node& config, std::int64_t classes) {
  return make_torchvision_vit(context, classes, vit_config(config));
}

struct Classifier {
  std::string_view model_type;
  Layer (*make)(const ImageContext& context, const Node& config, std::int64_t classes);
  bool fixed_size = false;  // other images do not fit the model's table of positions
};

constexpr Classifier kClassifiers[] = {
    {"timm_mixer", timm_mixer, true},
    {"timm_vit", timm_vit, true},
    {"torchvision_alexnet", alexnet},
    {"torchvision_convnext", convnext},
    {"torchvision_densenet", densenet},
    {"torchvision_efficientnet", efficientnet},
    {"torchvision_efficientnet_v2", efficientnet_v2},
    {"torchvision_googlenet", googlenet},
    {"torchvision_inception_v3", inception_v3},
    {"torchvision_mobilenet_v2", mobilenet_v2},
    {"torchvision_mobilenet_v3", mobilenet_v3},
    {"torchvision_resnet", resnet},
    {"torchvision_squeezenet", squeezenet},
    {"torchvision_swin", swin},
    {"torchvision_vgg", vgg},
    {"torchvision_vit", torchvision_vit, true},
};

const Classifier& classifier_of(const Node& config) {
  const Node& type = config.at("model_type");
  for (const Classifier& classifier : kClassifiers) {
    if (classifier.model_type == type.as_string()) return classifier;
  }
  type.refuse("it is not a known classifier family");
}

}  // namespace

std::unique_ptr<Network> make_classifier(Builder& builder, const Node& config,
                                         const ModelSettings& given) {
  const Classifier& classifier = classifier_of(config);
  const std::int64_t own_size = required_count(config, {"image_size"});
  ModelSettings settings = given;
  if (settings.image_height == 0) settings.image_height = settings.image_width = own_size;
  if (classifier.fixed_size &&
      (settings.image_height != own_size || settings.image_width != own_size)) {
    config.refuse(fmt::format("it takes images of {} x {} only; leave training.image_size out",
                              own_size, own_size));
  }
  const std::int64_t classes = count_or(config, {"num_classes"}, 1000, kMaxClasses);
  const ImageContext context{builder, settings};
  Layer layers = classifier.make(context, config, classes);
  builder.finish();
  return make_image_network(
      builder.session(), settings, std::move(layers),
      {{3, settings.image_height, settings.image_width}, {classes}, LossKind::kCrossEntropy});
}

}  // namespace memfathom
