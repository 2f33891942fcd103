#include "kernels/devices/cuda/cudnn/graph.h"

#include <fmt/format.h>

#include "core/error.h"
#include "kernels/devices/cuda/cudnn/graph_builder.h"

namespace memfathom::cudnn {
namespace {

[[noreturn]] void refuse(const ConvolutionQuery& query, std::string_view why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", to_string(query), why));
}

// Strides of a dense tensor with the channels (dimension 1) outermost after the batch, or
// innermost.
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

// Widens 1-D to 2-D: PyTorch inserts an extent of 1 in front.
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
                          .dilation = query.dilation,
                          .alignment = {}};
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
    convolution.channels_last = false;  // PyTorch makes a 1-D input contiguous before it widens it
  }
  return convolution;
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

}  // namespace

Graph::Graph(DType dtype)
    : dtype_(dtype), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph") {}

Graph::Graph(const Convolution& convolution) : Graph(convolution.dtype) {
  GraphBuilder builder(*this);
  const ConvolutionAttributes names = attributes_of(convolution.kind);
  const cudnnDataType_t type = to_cudnn(convolution.dtype);

  Descriptor& description = builder.part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  description.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                  CUDNN_DATA_FLOAT);  // also for 16-bit tensors, as in PyTorch
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

  Descriptor& operation = builder.part(names.operation, names.what);
  const auto add = [&](TensorId id, const Shape& extents,
                       std::int64_t alignment) -> const Descriptor& {
    return *builder.tensor(id, type, extents, packed(extents, convolution.channels_last), alignment)
                .descriptor;
  };
  operation.set(names.x, add(kX, convolution.x, convolution.alignment.x));
  operation.set(names.w, add(kW, convolution.w, convolution.alignment.w));
  operation.set(names.y, add(kY, convolution.y, convolution.alignment.y));
  operation.set(names.description, description);
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  builder.add(operation);
  builder.finish();
}

}  // namespace memfathom::cudnn
