#include "estimator/models/stack/layer.h"

#include <array>

namespace memfathom {
namespace {

template <typename Visit>
void for_each_type(Visit visit) {
  for (const auto* table : {&dense_layer_types(), &image_layer_types(), &attention_layer_types(),
                            &fourier_layer_types(), &combinator_types()}) {
    for (const LayerType& type : *table) visit(type);
  }
}

const LayerType* find_type(std::string_view name) {
  const LayerType* found = nullptr;
  for_each_type([&](const LayerType& type) {
    if (type.name == name) found = &type;
  });
  return found;
}

// A stack of more layers than this is a mistake or an attack.
constexpr std::int64_t kMostLayers = 100000;

}  // namespace

std::vector<std::string_view> layer_types() {
  std::vector<std::string_view> names;
  for_each_type([&](const LayerType& type) { names.push_back(type.name); });
  names.push_back("repeat");
  return names;
}

namespace {

Layer make_layer(StackContext& context, const Node& spec) {
  const Node& name = spec.at("type");
  const LayerType* type = find_type(name.as_string());
  if (type == nullptr) name.as_choice(layer_types());  // says which type was meant
  std::vector<std::string_view> keys = type->keys;
  keys.push_back("type");
  spec.check_keys(keys);
  return type->make(context, spec);
}

// `repeat` is as if its layers were written one after the other: it leaves no layer of its own.
void append_layer(StackContext& context, const Node& spec, std::vector<Layer>& layers) {
  if (spec.at("type").is_string() && spec.at("type").as_string() == "repeat") {
    spec.check_keys({"type", "times", "layers"});
    const std::int64_t times = spec.at("times").as_int(0, kMostLayers);
    for (std::int64_t i = 0; i < times; ++i) {
      for (const Node& inner : spec.at("layers").items()) append_layer(context, inner, layers);
    }
    return;
  }
  if (layers.size() >= static_cast<std::size_t>(kMostLayers))
    spec.refuse("the stack has more layers than any network; use fewer repeats");
  layers.push_back(make_layer(context, spec));
}

}  // namespace

std::vector<Layer> make_layers(StackContext& context, const Node& list) {
  std::vector<Layer> layers;
  for (const Node& spec : list.items()) append_layer(context, spec, layers);
  return layers;
}

Tensor run_layers(const std::vector<Layer>& layers, const Tensor& x) {
  Tensor t = x;
  for (const Layer& layer : layers) t = layer(t);
  return t;
}

}  // namespace memfathom
