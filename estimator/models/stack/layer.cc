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

}  // namespace

MakeLayer find_layer(std::string_view type) {
  const LayerType* found = find_type(type);
  return found == nullptr ? nullptr : found->make;
}

std::vector<std::string_view> layer_types() {
  std::vector<std::string_view> names;
  for_each_type([&](const LayerType& type) { names.push_back(type.name); });
  return names;
}

Layer make_layer(StackContext& context, const Node& spec) {
  const Node& name = spec.at("type");
  const LayerType* type = find_type(name.as_string());
  if (type == nullptr) name.as_choice(layer_types());  // says which type was meant
  std::vector<std::string_view> keys = type->keys;
  keys.push_back("type");
  spec.check_keys(keys);
  return type->make(context, spec);
}

std::vector<Layer> make_layers(StackContext& context, const Node& list) {
  std::vector<Layer> layers;
  for (const Node& spec : list.items()) layers.push_back(make_layer(context, spec));
  return layers;
}

Tensor run_layers(const std::vector<Layer>& layers, const Tensor& x) {
  Tensor t = x;
  for (const Layer& layer : layers) t = layer(t);
  return t;
}

}  // namespace memfathom
