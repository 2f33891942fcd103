// Own families: mlp, cnn, unet and fno by a few keys (docs/models.md), as stacks of layers.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/families/families.h"
#include "estimator/models/stack/stack_network.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxDepth = 64;

using Keys = std::initializer_list<std::pair<std::string_view, std::int64_t>>;

Node layer(std::string_view type, Keys keys = {}) {
  Node made = Node::map();
  made.set("type", Node::string(std::string(type)));
  for (const auto& [key, value] : keys) made.set(key, Node::integer(value));
  return made;
}

Node list_of(const std::vector<std::int64_t>& values) {
  Node list = Node::list();
  for (const std::int64_t value : values) list.append(Node::integer(value));
  return list;
}

// The layers of a stack, and the extents of its input.
struct Stack {
  std::vector<std::int64_t> shape;
  std::vector<Node> layers;
  std::string_view loss = "cross_entropy";

  void add(Node made) { layers.push_back(std::move(made)); }
};

Node list_of(std::vector<Node> layers) {
  Node list = Node::list();
  for (Node& made : layers) list.append(std::move(made));
  return list;
}

// As a job's `model` has it.
Node model_of(Stack stack) {
  Node input = Node::map();
  input.set("shape", list_of(stack.shape));
  Node model = Node::map();
  model.set("input", std::move(input));
  model.set("layers", list_of(std::move(stack.layers)));
  model.set("loss", Node::string(std::string(stack.loss)));
  return model;
}

Node conv(int dims, std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return layer(fmt::format("conv{}d", dims),
               {{"in", in}, {"out", out}, {"kernel", kernel}, {"padding", kernel / 2}});
}

std::vector<std::int64_t> image_shape(std::int64_t channels, const ModelSettings& settings,
                                      std::int64_t fallback) {
  return {channels, settings.image_height > 0 ? settings.image_height : fallback,
          settings.image_width > 0 ? settings.image_width : fallback};
}

std::string activation_type(const Node& config) {
  const Node* name = find_any(config, {"activation"});
  if (name == nullptr) return "relu";
  static constexpr std::string_view kNames[] = {"relu",     "gelu",    "silu",       "mish",
                                                "tanh",     "sigmoid", "leaky_relu", "elu",
                                                "softplus", "selu",    "relu6"};
  return std::string(kNames[name->as_choice(kNames)]);
}

Stack mlp_stack(const Node& config, const ModelSettings& settings) {
  config.check_keys({"model_type", "in_features", "width", "layers", "out_features", "activation",
                     "batch_norm", "dropout"});
  Stack stack;
  std::int64_t in = required_count(config, {"in_features"});
  const std::int64_t width = required_count(config, {"width"});
  const std::int64_t layers = count_or(config, {"layers"}, 3, kMaxLayers);
  const double dropout = settings.dropout.value_or(probability_or(config, {"dropout"}, 0));
  stack.shape = {in};
  for (std::int64_t i = 0; i < layers; ++i) {
    stack.add(layer("linear", {{"in", in}, {"out", width}}));
    if (flag_or(config, {"batch_norm"}, false))
      stack.add(layer("batch_norm", {{"features", width}}));
    stack.add(layer(activation_type(config)));
    if (dropout > 0) {
      Node drop = layer("dropout");
      drop.set("p", Node::number(dropout));
      stack.add(std::move(drop));
    }
    in = width;
  }
  stack.add(layer("linear", {{"in", in}, {"out", required_count(config, {"out_features"})}}));
  return stack;
}

Stack cnn_stack(const Node& config, const ModelSettings& settings) {
  config.check_keys(
      {"model_type", "in_channels", "width", "layers", "num_classes", "activation", "batch_norm"});
  Stack stack;
  std::int64_t in = count_or(config, {"in_channels"}, 3);
  std::int64_t width = required_count(config, {"width"});
  const std::int64_t layers = count_or(config, {"layers"}, 3, kMaxDepth);
  stack.shape = image_shape(in, settings, 32);
  for (std::int64_t i = 0; i < layers; ++i) {
    stack.add(conv(2, in, width, 3));
    if (flag_or(config, {"batch_norm"}, true))
      stack.add(layer("batch_norm", {{"features", width}}));
    stack.add(layer(activation_type(config)));
    stack.add(layer("max_pool2d", {{"kernel", 2}, {"stride", 2}}));
    in = width;
    if (width <= kMaxWidth / 2) width *= 2;
  }
  stack.add(layer("adaptive_avg_pool2d", {{"size", 1}}));
  stack.add(layer("flatten"));
  stack.add(layer("linear", {{"in", in}, {"out", count_or(config, {"num_classes"}, 10)}}));
  return stack;
}

// Twice (convolution, batch norm, ReLU in place).
void add_double(std::vector<Node>& layers, std::int64_t in, std::int64_t out) {
  for (int i = 0; i < 2; ++i) {
    layers.push_back(conv(2, i == 0 ? in : out, out, 3));
    layers.push_back(layer("batch_norm", {{"features", out}}));
    layers.push_back(layer("relu"));
    layers.back().set("inplace", Node::boolean(true));
  }
}

// One level: convolutions, the levels below it beside a skip, joined, convolutions.
std::vector<Node> unet_level(std::int64_t in, std::int64_t width, std::int64_t depth) {
  std::vector<Node> layers;
  add_double(layers, in, width);
  if (depth == 0) return layers;
  std::vector<Node> below{layer("max_pool2d", {{"kernel", 2}, {"stride", 2}})};
  for (Node& inner : unet_level(width, 2 * width, depth - 1)) below.push_back(std::move(inner));
  below.push_back(
      layer("conv_transpose2d", {{"in", 2 * width}, {"out", width}, {"kernel", 2}, {"stride", 2}}));
  layers.push_back(layer("concat"));
  layers.back().set("branches", list_of({Node::list(), list_of(std::move(below))}));
  add_double(layers, 2 * width, width);
  return layers;
}

Stack unet_stack(const Node& config, const ModelSettings& settings) {
  constexpr std::int64_t kMaxLevels = 12;
  config.check_keys({"model_type", "in_channels", "out_channels", "width", "layers"});
  Stack stack;
  const std::int64_t in = count_or(config, {"in_channels"}, 3);
  const std::int64_t width = count_or(config, {"width"}, 64, kMaxWidth >> kMaxLevels);
  stack.shape = image_shape(in, settings, 256);
  stack.layers = unet_level(in, width, count_or(config, {"layers"}, 4, kMaxLevels));
  stack.add(conv(2, width, count_or(config, {"out_channels"}, 2), 1));
  return stack;
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

Stack fno_stack(const Node& config, const ModelSettings& settings) {
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
  Stack stack;
  stack.loss = "mse";
  stack.shape = grid;
  stack.shape.insert(stack.shape.begin(), in);
  if (neuralop) {
    stack.add(layer("grid_embedding", {{"dims", dims}}));
    stack.add(conv(dims, in + dims, inner, 1));
    stack.add(layer("gelu"));
    stack.add(conv(dims, inner, width, 1));
  } else {
    stack.add(conv(dims, in, width, 1));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool last = neuralop && i + 1 == layers;
    Node block = layer("fno_block", {{"width", width}});
    block.set("style", Node::string(neuralop ? "neuralop" : "classic"));
    block.set("modes", list_of(modes));
    if (last) block.set("last", Node::boolean(true));
    stack.add(std::move(block));
  }
  stack.add(conv(dims, width, inner, 1));
  stack.add(layer("gelu"));
  stack.add(conv(dims, inner, count_or(config, {"out_channels"}, 1), 1));
  return stack;
}

}  // namespace

// nullptr when model_type is none of them.
std::unique_ptr<Network> make_builtin_family(Builder& builder, const Node& config,
                                             const ModelSettings& settings) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  const std::string& name = type->as_string();
  Stack stack;
  if (name == "mlp") {
    stack = mlp_stack(config, settings);
  } else if (name == "cnn") {
    stack = cnn_stack(config, settings);
  } else if (name == "unet") {
    stack = unet_stack(config, settings);
  } else if (name == "fno") {
    stack = fno_stack(config, settings);
  } else {
    return nullptr;
  }
  return make_stack_network(builder, model_of(std::move(stack)), settings);
}

}  // namespace memfathom
