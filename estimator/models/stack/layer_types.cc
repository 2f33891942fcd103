#include "estimator/models/stack/layer_types.h"

#include <algorithm>
#include <memory>

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
constexpr std::int64_t kMaxLayers = 100000;

}  // namespace

std::vector<std::string_view> layer_types() {
  std::vector<std::string_view> names;
  for_each_type([&](const LayerType& type) { names.push_back(type.name); });
  names.emplace_back("repeat");
  return names;
}

namespace {

struct TypedLayer {
  std::string_view type;
  Layer layer;
};

TypedLayer make_layer(StackContext& context, const Node& spec) {
  const Node& name = spec.at("type");
  const LayerType* type = find_type(name.as_string());
  if (type == nullptr) {
    name.as_choice(layer_types());  // says which type was meant
    name.refuse("it must be a type of layer");
  }
  std::vector<std::string_view> keys = type->keys;
  keys.emplace_back("type");
  spec.check_keys(keys);
  return {type->name, type->make(context, spec)};
}

// The list with its repeats unrolled: `repeat` is as if its layers were written one after the
// other, and leaves no layer of its own.
void unroll(const Node& spec, std::vector<const Node*>& specs) {
  if (spec.at("type").is_string() && spec.at("type").as_string() == "repeat") {
    spec.check_keys({"type", "times", "layers"});
    const std::int64_t times = spec.at("times").as_int(0, kMaxLayers);
    for (std::int64_t i = 0; i < times; ++i) {
      for (const Node& inner : spec.at("layers").items()) unroll(inner, specs);
    }
    return;
  }
  if (specs.size() >= static_cast<std::size_t>(kMaxLayers))
    spec.refuse("the stack has more layers than any network; use fewer repeats");
  specs.push_back(&spec);
}

using LayerIterator = std::vector<TypedLayer>::const_iterator;

std::vector<Layer> layers_of(LayerIterator begin, LayerIterator end) {
  std::vector<Layer> layers;
  for (LayerIterator place = begin; place != end; ++place) layers.push_back(place->layer);
  return layers;
}

// A module of its own, whose input has a name where it is called: it lives until the call is over.
Layer as_module(LayerIterator begin, LayerIterator end) {
  if (end - begin == 1) return begin->layer;
  const auto layers = std::make_shared<const std::vector<Layer>>(layers_of(begin, end));
  return [layers](const Tensor& x) { return run_layers(*layers, x); };
}

}  // namespace

// Layers one after the other are one sequence. Those before and after the blocks of a Fourier
// operator are its lifting and its projection, which every such network has as modules.
std::vector<Layer> make_layers(StackContext& context, const Node& list) {
  std::vector<const Node*> specs;
  for (const Node& spec : list.items()) unroll(spec, specs);
  std::vector<TypedLayer> layers;
  for (std::size_t i = 0; i < specs.size();) {
    const std::size_t length = dense_block_length(std::span(specs).subspan(i));
    if (length > 0) {
      layers.push_back({"concat", make_dense_block(context, std::span(specs).subspan(i, length))});
    } else {
      layers.push_back(make_layer(context, *specs[i]));
    }
    i += std::max<std::size_t>(length, 1);
  }
  const auto is_block = [](const TypedLayer& layer) { return layer.type == "fno_block"; };
  const LayerIterator first = std::find_if(layers.cbegin(), layers.cend(), is_block);
  if (first == layers.cend()) return layers_of(layers.cbegin(), layers.cend());
  const LayerIterator after = std::find_if(layers.crbegin(), layers.crend(), is_block).base();
  const LayerIterator lifting = std::find_if(
      layers.cbegin(), first, [](const auto& l) { return l.type != "grid_embedding"; });
  std::vector<Layer> parts = layers_of(layers.cbegin(), lifting);
  if (lifting != first) parts.push_back(as_module(lifting, first));
  for (LayerIterator place = first; place != after; ++place) parts.push_back(place->layer);
  if (after != layers.cend()) parts.push_back(as_module(after, layers.cend()));
  return parts;
}

}  // namespace memfathom
