// Layer types: how each element of a `layers` list becomes a Layer, by its keys.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/layer.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"

namespace memfathom {

// What a layer's maker sees: the builder, and the extents ([batch = 1, ...]) that reach it and that
// it leaves.
struct StackContext {
  Builder& builder;
  const ModelSettings& settings;
  Shape shape;
  std::vector<Tensor> resident;  // tensors that lie with the batch: rotary tables, coordinates
};

using MakeLayer = Layer (*)(StackContext& context, const Node& spec);

// All types, for "did you mean".
std::vector<std::string_view> layer_types();

// The layers of a list, repeats unrolled. Unknown types and keys are errors that name the nearest
// known one.
std::vector<Layer> make_layers(StackContext& context, const Node& list);

// How many layers at the head of `specs` are one dense block: concats that each join their input
// with one branch of it, after one that joins nothing, or at least two of them. 0: none.
std::size_t dense_block_length(std::span<const Node* const> specs);
// Such a block as scripts write it: a list of features, joined anew for every branch and at the
// end.
Layer make_dense_block(StackContext& context, std::span<const Node* const> specs);

// One entry of the tables below: a type, its keys, its maker.
struct LayerType {
  std::string_view name;
  std::vector<std::string_view> keys;
  MakeLayer make;
};

// The tables, one per file: dense_layers.cc, image_layers.cc, attention_layers.cc,
// fourier_layers.cc, combinators.cc.
const std::vector<LayerType>& dense_layer_types();
const std::vector<LayerType>& image_layer_types();
const std::vector<LayerType>& attention_layer_types();
const std::vector<LayerType>& fourier_layer_types();
const std::vector<LayerType>& combinator_types();

}  // namespace memfathom
