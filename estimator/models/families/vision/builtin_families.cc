// Own families: mlp, cnn, unet and fno by a few keys (docs/models.md), written out as a stack of
// layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/families/families.h"
#include "estimator/models/stack/stack_network.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxDepth = 64;

// The layers of a stack as JSON text, and the extents of its input.
struct StackText {
  std::string shape;
  std::vector<std::string> layers;
  const char* loss = "cross_entropy";

  void add(std::string layer) { layers.push_back(std::move(layer)); }
};

std::string listed(const std::vector<std::string>& layers) {
  return fmt::format("[{}]", fmt::join(layers, ","));
}

std::string conv(int dims, std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return fmt::format(R"({{"type":"conv{}d","in":{},"out":{},"kernel":{},"padding":{}}})", dims, in,
                     out, kernel, kernel / 2);
}

std::string image_shape(std::int64_t channels, const ModelSettings& settings,
                        std::int64_t fallback) {
  const std::int64_t height = settings.image_height > 0 ? settings.image_height : fallback;
  const std::int64_t width = settings.image_width > 0 ? settings.image_width : fallback;
  return fmt::format("[{},{},{}]", channels, height, width);
}

std::string activation_type(const Node& config) {
  const Node* name = find_any(config, {"activation"});
  if (name == nullptr) return "relu";
  static constexpr std::string_view kNames[] = {"relu",     "gelu",    "silu",       "mish",
                                                "tanh",     "sigmoid", "leaky_relu", "elu",
                                                "softplus", "selu",    "relu6"};
  return std::string(kNames[name->as_choice(kNames)]);
}

StackText mlp_text(const Node& config, const ModelSettings& settings) {
  config.check_keys({"model_type", "in_features", "width", "layers", "out_features", "activation",
                     "batch_norm", "dropout"});
  StackText text;
  std::int64_t in = required_count(config, {"in_features"});
  const std::int64_t width = required_count(config, {"width"});
  const std::int64_t layers = count_or(config, {"layers"}, 3, kMaxLayers);
  const double dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  text.shape = fmt::format("[{}]", in);
  for (std::int64_t i = 0; i < layers; ++i) {
    text.add(fmt::format(R"({{"type":"linear","in":{},"out":{}}})", in, width));
    if (flag_or(config, {"batch_norm"}, false))
      text.add(fmt::format(R"({{"type":"batch_norm","features":{}}})", width));
    text.add(fmt::format(R"({{"type":"{}"}})", activation_type(config)));
    if (dropout > 0) text.add(fmt::format(R"({{"type":"dropout","p":{}}})", dropout));
    in = width;
  }
  text.add(fmt::format(R"({{"type":"linear","in":{},"out":{}}})", in,
                       required_count(config, {"out_features"})));
  return text;
}

StackText cnn_text(const Node& config, const ModelSettings& settings) {
  config.check_keys(
      {"model_type", "in_channels", "width", "layers", "num_classes", "activation", "batch_norm"});
  StackText text;
  std::int64_t in = count_or(config, {"in_channels"}, 3);
  std::int64_t width = required_count(config, {"width"});
  const std::int64_t layers = count_or(config, {"layers"}, 3, kMaxDepth);
  text.shape = image_shape(in, settings, 32);
  for (std::int64_t i = 0; i < layers; ++i) {
    text.add(conv(2, in, width, 3));
    if (flag_or(config, {"batch_norm"}, true))
      text.add(fmt::format(R"({{"type":"batch_norm","features":{}}})", width));
    text.add(fmt::format(R"({{"type":"{}"}})", activation_type(config)));
    text.add(R"({"type":"max_pool2d","kernel":2,"stride":2})");
    in = width;
    if (width <= kMaxWidth / 2) width *= 2;
  }
  text.add(R"({"type":"adaptive_avg_pool2d","size":1})");
  text.add(R"({"type":"flatten"})");
  text.add(fmt::format(R"({{"type":"linear","in":{},"out":{}}})", in,
                       count_or(config, {"num_classes"}, 10)));
  return text;
}

// Twice (convolution, batch norm, ReLU in place).
void add_double(std::vector<std::string>& layers, std::int64_t in, std::int64_t out) {
  for (int i = 0; i < 2; ++i) {
    layers.push_back(conv(2, i == 0 ? in : out, out, 3));
    layers.push_back(fmt::format(R"({{"type":"batch_norm","features":{}}})", out));
    layers.emplace_back(R"({"type":"relu","inplace":true})");
  }
}

// One level: convolutions, the levels below it beside a skip, joined, convolutions.
std::vector<std::string> unet_level(std::int64_t in, std::int64_t width, std::int64_t depth) {
  std::vector<std::string> layers;
  add_double(layers, in, width);
  if (depth == 0) return layers;
  std::vector<std::string> below{R"({"type":"max_pool2d","kernel":2,"stride":2})"};
  for (std::string& layer : unet_level(width, 2 * width, depth - 1))
    below.push_back(std::move(layer));
  below.push_back(fmt::format(
      R"({{"type":"conv_transpose2d","in":{},"out":{},"kernel":2,"stride":2}})", 2 * width, width));
  layers.push_back(fmt::format(R"({{"type":"concat","branches":[[],{}]}})", listed(below)));
  add_double(layers, 2 * width, width);
  return layers;
}

StackText unet_text(const Node& config, const ModelSettings& settings) {
  constexpr std::int64_t kMaxLevels = 12;
  config.check_keys({"model_type", "in_channels", "out_channels", "width", "layers"});
  StackText text;
  const std::int64_t in = count_or(config, {"in_channels"}, 3);
  const std::int64_t width = count_or(config, {"width"}, 64, kMaxWidth >> kMaxLevels);
  text.shape = image_shape(in, settings, 256);
  text.layers = unet_level(in, width, count_or(config, {"layers"}, 4, kMaxLevels));
  text.add(conv(2, width, count_or(config, {"out_channels"}, 2), 1));
  return text;
}

std::vector<std::int64_t> fno_modes(const Node& config) {
  const Node& node = config.at("modes");
  std::vector<std::int64_t> modes;
  if (node.is_list()) {
    modes = node.as_ints(1, kMaxWidth);
  } else {
    modes.assign(static_cast<std::size_t>(count_or(config, {"dims"}, 2, 3)),
                 node.as_int(1, kMaxWidth));
  }
  if (modes.empty() || modes.size() > 3)
    node.refuse("it must have one number for each of the one to three dimensions");
  return modes;
}

StackText fno_text(const Node& config, const ModelSettings& settings) {
  config.check_keys({"model_type", "style", "dims", "modes", "width", "layers", "in_channels",
                     "out_channels", "grid"});
  const Node* style = find_any(config, {"style"});
  const bool neuralop = style != nullptr && style->as_choice({"classic", "neuralop"}) == 1;
  const std::vector<std::int64_t> modes = fno_modes(config);
  const int dims = static_cast<int>(modes.size());
  const std::int64_t in = count_or(config, {"in_channels"}, 3);
  const std::int64_t width = count_or(config, {"width"}, 64);
  const std::int64_t layers = count_or(config, {"layers"}, 4, kMaxLayers);
  const std::int64_t inner = neuralop ? 2 * width : 128;
  std::vector<std::int64_t> grid(modes.size(),
                                 settings.image_height > 0 ? settings.image_height : 64);
  if (dims >= 2 && settings.image_width > 0) grid.back() = settings.image_width;
  if (const Node* given = find_any(config, {"grid"})) {
    grid = given->as_ints(1, kMaxWidth);
    if (grid.size() != modes.size()) given->refuse("it must have as many numbers as modes");
  }
  StackText text;
  text.loss = "mse";
  text.shape = fmt::format("[{},{}]", in, fmt::join(grid, ","));
  if (neuralop) {
    text.add(fmt::format(R"({{"type":"grid_embedding","dims":{}}})", dims));
    text.add(conv(dims, in + dims, inner, 1));
    text.add(R"({"type":"gelu"})");
    text.add(conv(dims, inner, width, 1));
  } else {
    text.add(conv(dims, in, width, 1));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool last = neuralop && i + 1 == layers;
    text.add(fmt::format(R"({{"type":"fno_block","style":"{}","width":{},"modes":[{}]{}}})",
                         neuralop ? "neuralop" : "classic", width, fmt::join(modes, ","),
                         last ? R"(,"last":true)" : ""));
  }
  text.add(conv(dims, width, inner, 1));
  text.add(R"({"type":"gelu"})");
  text.add(conv(dims, inner, count_or(config, {"out_channels"}, 1), 1));
  return text;
}

}  // namespace

// nullptr when model_type is none of them.
std::unique_ptr<Network> make_builtin_family(Builder& builder, const Node& config,
                                             const ModelSettings& settings) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  const std::string& name = type->as_string();
  StackText text;
  if (name == "mlp") {
    text = mlp_text(config, settings);
  } else if (name == "cnn") {
    text = cnn_text(config, settings);
  } else if (name == "unet") {
    text = unet_text(config, settings);
  } else if (name == "fno") {
    text = fno_text(config, settings);
  } else {
    return nullptr;
  }
  const Node model = parse_json(fmt::format(R"({{"input":{{"shape":{}}},"layers":{},"loss":"{}"}})",
                                            text.shape, listed(text.layers), text.loss),
                                config.file());
  return make_stack_network(builder, model, settings);
}

}  // namespace memfathom
