#include "kernels/devices/cpu/libraries/convolution_plan.h"

#include <utility>

#include "kernels/devices/cpu/libraries/onednn.h"
#include "kernels/devices/element/split.h"

namespace memfathom::cpu {
namespace {

using dnnl::memory;

memory::dims to_dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

memory::desc described(const Shape& shape, const Shape& strides) {
  return {to_dims(shape), memory::data_type::f32, to_dims(strides)};
}

// oneDNN represents groups as a separate dimension: [groups, filters / groups, channels / groups,
// space...].
Shape grouped_shape(const Shape& shape, std::int64_t groups) {
  if (groups == 1) return shape;
  Shape grouped{groups, shape[0] / groups};
  for (int d = 1; d < shape.rank(); ++d) grouped.push_back(shape[d]);
  return grouped;
}

memory::desc described_weight(const Shape& shape, std::int64_t groups, bool channels_last) {
  const Shape strides = layout_strides(shape, channels_last);
  if (groups == 1) return described(shape, strides);
  Shape steps{strides[0] * (shape[0] / groups), strides[0]};
  for (int d = 1; d < shape.rank(); ++d) steps.push_back(strides[d]);
  return described(grouped_shape(shape, groups), steps);
}

memory::desc any_layout(const Shape& weight, std::int64_t groups) {
  return {to_dims(grouped_shape(weight, groups)), memory::data_type::f32, memory::format_tag::any};
}

// A dilation of 1 is 0 in oneDNN.
memory::dims dilates(const Shape& dilation) {
  memory::dims result;
  for (const std::int64_t d : dilation) result.push_back(d - 1);
  return result;
}

void make_primitive(const ConvolutionQuery& query, const dnnl::engine& engine,
                    ConvolutionPlan& plan) {
  const ConvolutionShape shape{plan.image,
                               any_layout(plan.weight_shape, query.groups),
                               plan.map,
                               to_dims(query.stride),
                               dilates(query.dilation),
                               to_dims(query.padding)};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto forward = describe_forward(shape, attributes, engine);
  const auto keep = [&](dnnl::primitive primitive, const memory::desc& weight,
                        const memory::desc& scratchpad) {
    plan.primitive = std::move(primitive);
    plan.weight_inside = weight;
    plan.scratchpad = scratchpad;
  };
  switch (plan.writes) {
    case ConvolutionKind::kForward:
      keep(dnnl::convolution_forward(forward), forward.weights_desc(), forward.scratchpad_desc());
      return;
    case ConvolutionKind::kDataGradient: {
      using Backward = dnnl::convolution_backward_data;
      const auto made = describe_backward<Backward>(shape, attributes, engine, forward);
      keep(Backward(made), made.weights_desc(), made.scratchpad_desc());
      return;
    }
    case ConvolutionKind::kWeightGradient: {
      using Backward = dnnl::convolution_backward_weights;
      const auto made = describe_backward<Backward>(shape, attributes, engine, forward);
      keep(Backward(made), made.diff_weights_desc(), made.scratchpad_desc());
      return;
    }
  }
}

void lay_out(const ConvolutionQuery& query, ConvolutionPlan& plan) {
  const auto put = [&plan](Piece& piece, std::size_t size) {
    place(piece, static_cast<std::int64_t>(size), plan.workspace);
  };
  put(plan.scratchpad_piece, plan.scratchpad.get_size());
  if (plan.weight_inside != plan.weight) put(plan.weight_piece, plan.weight_inside.get_size());
  if (is_16bit_float(query.dtype)) {
    put(plan.image_copy, plan.image.get_size());
    put(plan.map_copy, plan.map.get_size());
    put(plan.weight_copy, plan.weight.get_size());
  }
}

}  // namespace

ConvolutionPlan make_plan(const ConvolutionQuery& query, const dnnl::engine& engine) {
  ConvolutionPlan plan;
  plan.writes = written(query);
  const Shape result = result_shape(query);
  plan.image_shape = query.transposed ? result : query.input;
  plan.map_shape = query.transposed ? query.input : result;
  plan.weight_shape = query.weight;
  plan.image = described(plan.image_shape, layout_strides(plan.image_shape, query.channels_last));
  plan.map = described(plan.map_shape, layout_strides(plan.map_shape, query.channels_last));
  plan.weight = described_weight(query.weight, query.groups, query.channels_last);
  make_primitive(query, engine, plan);
  lay_out(query, plan);
  return plan;
}

}  // namespace memfathom::cpu
