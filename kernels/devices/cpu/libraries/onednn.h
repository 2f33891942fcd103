// oneDNN's primitive descriptors for its versions 2 (Debian 12, Ubuntu 22.04) and 3 (Ubuntu 24.04),
// which has no operation descriptors and makes the logarithmic softmax an algorithm of softmax.
#pragma once

#include <dnnl.hpp>
#include <type_traits>

namespace memfathom::cpu {

struct ConvolutionShape {
  dnnl::memory::desc image, weight, map;
  dnnl::memory::dims strides, dilates, padding;
};

inline dnnl::convolution_forward::primitive_desc describe_forward(
    const ConvolutionShape& c, const dnnl::primitive_attr& attributes, const dnnl::engine& engine) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine,    kKind,     kAlgorithm, c.image,   c.weight,  c.map,
          c.strides, c.dilates, c.padding,  c.padding, attributes};
#else
  const dnnl::convolution_forward::desc operation(kKind, kAlgorithm, c.image, c.weight, c.map,
                                                  c.strides, c.dilates, c.padding, c.padding);
  return {operation, attributes, engine};
#endif
}

// Backward is that of the data or of the weights.
template <typename Backward>
typename Backward::primitive_desc describe_backward(
    const ConvolutionShape& c, const dnnl::primitive_attr& attributes, const dnnl::engine& engine,
    const dnnl::convolution_forward::primitive_desc& forward) {
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine,    kAlgorithm, c.image,   c.weight, c.map,     c.strides,
          c.dilates, c.padding,  c.padding, forward,  attributes};
#else
  const typename Backward::desc operation(kAlgorithm, c.image, c.weight, c.map, c.strides,
                                          c.dilates, c.padding, c.padding);
  return {operation, attributes, engine, forward};
#endif
}

// Softmax over the columns of `rows`.
template <bool kLog>
struct SoftmaxOf {
#if DNNL_VERSION_MAJOR >= 3
  static constexpr dnnl::algorithm kAlgorithm =
      kLog ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  using Forward = dnnl::softmax_forward;
  using Backward = dnnl::softmax_backward;
#else
  using Forward = std::conditional_t<kLog, dnnl::logsoftmax_forward, dnnl::softmax_forward>;
  using Backward = std::conditional_t<kLog, dnnl::logsoftmax_backward, dnnl::softmax_backward>;
#endif

  static typename Forward::primitive_desc forward(const dnnl::memory::desc& rows,
                                                  const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine, dnnl::prop_kind::forward_training, kAlgorithm, rows, rows, 1};
#else
    return {{dnnl::prop_kind::forward_training, rows, 1}, engine};
#endif
  }
  static typename Backward::primitive_desc backward(
      const dnnl::memory::desc& rows, const dnnl::engine& engine,
      const typename Forward::primitive_desc& forward) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine, kAlgorithm, rows, rows, rows, 1, forward};
#else
    return {{rows, rows, 1}, engine, forward};
#endif
  }
};

}  // namespace memfathom::cpu
