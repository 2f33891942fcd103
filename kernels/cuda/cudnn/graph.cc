#include "kernels/cuda/cudnn/graph.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace memfathom::cudnn {
namespace {

// PyTorch passes the alignment of its pointers, at most 16; blocks of a caching allocator have
// more.
constexpr std::int64_t kAlignment = 16;

cudnnDataType_t to_cudnn(DType type) {
  switch (type) {
    case DType::kFp32: return CUDNN_DATA_FLOAT;
    case DType::kFp16: return CUDNN_DATA_HALF;
    case DType::kBf16: return CUDNN_DATA_BFLOAT16;
    default:
      throw Error(
          ErrorKind::kInput,
          fmt::format("cuDNN is asked about tensors of type {}; fp32, fp16 and bf16 are planned",
                      to_string(type)));
  }
}

[[noreturn]] void refuse(const ConvolutionQuery& query, std::string_view why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", to_string(query), why));
}

// Strides of a dense tensor whose channels (position 1) vary slowest after the batch, or fastest of
// all.
Shape packed(const Shape& extents, bool channels_last) {
  Shape strides = extents;
  std::int64_t step = 1;
  if (channels_last) {
    strides[1] = 1;
    step = extents[1];
  }
  for (int i = extents.rank() - 1; i >= 0; --i) {
    if (channels_last && i == 1) continue;
    strides[i] = step;
    if (__builtin_mul_overflow(step, extents[i], &step)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("a tensor of extents {} has too many elements", to_string(extents)));
    }
  }
  return strides;
}

// One spatial extent as two: PyTorch puts a 1 in front.
Shape widened(const Shape& shape, int at, std::int64_t value) {
  Shape wide;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == at) wide.push_back(value);
    wide.push_back(shape[i]);
  }
  return wide;
}

void check_shapes(const ConvolutionQuery& query) {
  const int rank = query.input.rank();
  if (rank < 3 || rank > 5) refuse(query, "the input must have one to three spatial extents");
  if (query.weight.rank() != rank) refuse(query, "the weight's rank must be the input's");
  for (const Shape* shape : {&query.stride, &query.padding, &query.dilation}) {
    if (shape->rank() != rank - 2)
      refuse(query, "stride, padding and dilation must have one value per spatial extent");
  }
  if (query.output_padding.rank() != 0 && query.output_padding.rank() != rank - 2) {
    refuse(query, "output padding must have one value per spatial extent");
  }
  for (const Shape* shape : {&query.input, &query.weight, &query.stride, &query.dilation}) {
    for (const std::int64_t extent : *shape) {
      if (extent < 1 || extent > INT32_MAX)
        refuse(query, "every extent, stride and dilation must be at least 1 and fit in 32 bits");
    }
  }
  for (const std::int64_t padding : query.padding) {
    if (padding < 0 || padding > INT32_MAX)
      refuse(query, "padding must not be negative and must fit in 32 bits");
  }
  if (query.groups < 1 || query.weight[0] % query.groups != 0)
    refuse(query, "the groups must divide the weight's first extent");
  const std::int64_t input_channels =
      query.transposed ? query.weight[0] : query.weight[1] * query.groups;
  if (query.input[1] != input_channels)
    refuse(query, "the input's channels must be those of the weight");
}

}  // namespace

Convolution to_cudnn(const ConvolutionQuery& query) {
  check_shapes(query);
  Shape output{query.input[0], query.transposed ? query.weight[1] * query.groups : query.weight[0]};
  for (int i = 0; i + 2 < query.input.rank(); ++i) {
    const std::int64_t reach = query.dilation[i] * (query.weight[i + 2] - 1) + 1;
    const std::int64_t extra = query.output_padding.rank() > 0 ? query.output_padding[i] : 0;
    const std::int64_t extent =
        query.transposed
            ? (query.input[i + 2] - 1) * query.stride[i] - 2 * query.padding[i] + reach + extra
            : (query.input[i + 2] + 2 * query.padding[i] - reach) / query.stride[i] + 1;
    if (extent < 1 || (!query.transposed && query.input[i + 2] + 2 * query.padding[i] < reach)) {
      refuse(query, "the kernel is larger than the padded input");
    }
    output.push_back(extent);
  }
  Convolution convolution{.kind = query.kind,
                          .dtype = query.dtype,
                          .channels_last = query.channels_last,
                          .x = query.transposed ? output : query.input,
                          .w = query.weight,
                          .y = query.transposed ? query.input : output,
                          .stride = query.stride,
                          .padding = query.padding,
                          .dilation = query.dilation};
  if (query.transposed && query.kind != ConvolutionKind::kWeightGradient) {
    convolution.kind = query.kind == ConvolutionKind::kForward ? ConvolutionKind::kDataGradient
                                                               : ConvolutionKind::kForward;
  }
  if (query.input.rank() == 3) {
    for (Shape* tensor : {&convolution.x, &convolution.w, &convolution.y})
      *tensor = widened(*tensor, 2, 1);
    convolution.stride = widened(convolution.stride, 0, 1);
    convolution.padding = widened(convolution.padding, 0, 0);
    convolution.dilation = widened(convolution.dilation, 0, 1);
    convolution.channels_last = false;  // PyTorch makes a 1-D input contiguous before it is widened
  }
  return convolution;
}

const Descriptor& Graph::tensor(TensorId id, cudnnDataType_t type, const Shape& extents,
                                const Shape& strides, bool by_value) {
  Descriptor& made = parts_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(id));
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(extents));
  made.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  if (by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  return made.finalize();
}

void Graph::finish() {
  operation_.finalize();
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_);
  graph_.finalize();
}

namespace {

struct ConvolutionAttributes {
  cudnnBackendDescriptorType_t operation;
  const char* what;
  cudnnBackendAttributeName_t x, w, y, description, alpha, beta;
};

ConvolutionAttributes attributes_of(ConvolutionKind kind) {
  switch (kind) {
    case ConvolutionKind::kForward: break;
    case ConvolutionKind::kDataGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              "convolution data gradient",
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionKind::kWeightGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              "convolution weight gradient",
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          "convolution forward",
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// Channels and length of an attention operand lie as PyTorch's [batch, length, heads, size]
// projection leaves them.
Shape head_strides(const Shape& extents) {
  return {extents[1] * extents[2] * extents[3], extents[3], extents[1] * extents[3], 1};
}

}  // namespace

Graph::Graph(const Convolution& convolution)
    : dtype_(convolution.dtype),
      operation_(attributes_of(convolution.kind).operation, attributes_of(convolution.kind).what),
      graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph") {
  const ConvolutionAttributes names = attributes_of(convolution.kind);
  const cudnnDataType_t type = to_cudnn(convolution.dtype);

  Descriptor& description =
      parts_.emplace_back(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  description.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                  CUDNN_DATA_FLOAT);  // also for 16-bit tensors, as PyTorch
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  description.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  description.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                  static_cast<std::int64_t>(convolution.stride.rank()));
  description.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                  std::span<const std::int64_t>(convolution.stride));
  description.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                  std::span<const std::int64_t>(convolution.padding));
  description.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                  std::span<const std::int64_t>(convolution.padding));
  description.set(CUDNN_ATTR_CONVOLUTION_DILATIONS,
                  std::span<const std::int64_t>(convolution.dilation));
  description.finalize();

  const auto add = [&](TensorId id, const Shape& extents) -> const Descriptor& {
    return tensor(id, type, extents, packed(extents, convolution.channels_last));
  };
  operation_.set(names.x, add(kX, convolution.x));
  operation_.set(names.w, add(kW, convolution.w));
  operation_.set(names.y, add(kY, convolution.y));
  operation_.set(names.description, description);
  operation_.set(names.alpha, 1.0F);
  operation_.set(names.beta, 0.0F);
  finish();
}

Graph::Graph(const Attention& attention)
    : dtype_(attention.dtype),
      operation_(attention.backward ? CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR
                                    : CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                 attention.backward ? "attention gradient" : "attention forward"),
      graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph") {
  const cudnnDataType_t type = to_cudnn(attention.dtype);
  const Shape q{attention.batch, attention.heads, attention.queries, attention.head_size};
  const Shape k{attention.batch, attention.key_heads, attention.keys, attention.head_size};
  const Shape stats{attention.batch, attention.heads, attention.queries, 1};
  const Shape one{1, 1, 1, 1};
  const auto add = [&](TensorId id, const Shape& extents) -> const Descriptor& {
    return tensor(id, type, extents, head_strides(extents));
  };
  if (attention.backward) {
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, add(kQ, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, add(kK, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, add(kV, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, add(kO, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, add(kDO, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, add(kDQ, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, add(kDK, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, add(kDV, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC,
                   tensor(kStats, CUDNN_DATA_FLOAT, stats, packed(stats, false)));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC,
                   tensor(kScale, CUDNN_DATA_FLOAT, one, one, true));
  } else {
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, add(kQ, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, add(kK, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, add(kV, k));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, add(kO, q));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
                   tensor(kStats, CUDNN_DATA_FLOAT, stats, packed(stats, false)));
    operation_.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
                   tensor(kScale, CUDNN_DATA_FLOAT, one, one, true));
  }
  finish();
}

}  // namespace memfathom::cudnn
