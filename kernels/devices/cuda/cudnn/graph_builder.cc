#include "kernels/devices/cuda/cudnn/graph_builder.h"

#include <fmt/format.h>

#include "core/error.h"

namespace memfathom::cudnn {
cudnnDataType_t to_cudnn(DType type) {
  switch (type) {
    case DType::kFp32: return CUDNN_DATA_FLOAT;
    case DType::kFp16: return CUDNN_DATA_HALF;
    case DType::kBf16: return CUDNN_DATA_BFLOAT16;
    case DType::kFp64:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kComplex64:
    case DType::kNf4: break;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the cuDNN planner does not support type {}; use fp32, fp16 or bf16",
                          to_string(type)));
}

Descriptor& GraphBuilder::part(cudnnBackendDescriptorType_t type, const char* what) {
  return graph_.parts_.emplace_back(type, what);
}

void GraphBuilder::add(Descriptor& operation) {
  operation.finalize();
  graph_.operations_.push_back(operation.raw());
}

void GraphBuilder::finish() {
  graph_.graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                    static_cast<std::int64_t>(graph_.operations_.size()),
                    graph_.operations_.data());
  graph_.graph_.finalize();
}

Value GraphBuilder::add_tensor(std::int64_t id, cudnnDataType_t type, const Shape& extents,
                               const Shape& strides, Placement place, std::int64_t alignment) {
  Descriptor& tensor = part(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(extents));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  if (place == Placement::kByValue) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  if (place == Placement::kVirtualTensor) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.finalize();
  return {&tensor, extents, strides};
}

Value GraphBuilder::tensor(TensorId id, cudnnDataType_t type, const Shape& extents,
                           const Shape& strides, std::int64_t alignment) {
  return add_tensor(id, type, extents, strides, Placement::kMemory, alignment);
}

Value GraphBuilder::scalar(TensorId id) {
  const Shape one{1, 1, 1, 1};
  return add_tensor(id, CUDNN_DATA_FLOAT, one, one, Placement::kByValue);
}

Value GraphBuilder::virtual_tensor(const Shape& extents, const Shape& strides,
                                   cudnnDataType_t type) {
  return add_tensor(next_virtual_++, type, extents, strides, Placement::kVirtualTensor);
}

void GraphBuilder::add(const Pointwise& pointwise) {
  Descriptor& description = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &pointwise.mode);
  description.set(CUDNN_ATTR_POINTWISE_MATH_PREC, pointwise.precision);
  if (pointwise.axis >= 0) description.set(CUDNN_ATTR_POINTWISE_AXIS, pointwise.axis);
  description.finalize();
  Descriptor& operation = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *pointwise.x.descriptor);
  if (pointwise.b != nullptr)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *pointwise.b->descriptor);
  if (pointwise.t != nullptr)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *pointwise.t->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *pointwise.y.descriptor);
  add(operation);
}

Value GraphBuilder::pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value* b) {
  const Value y = virtual_tensor(x.extents, x.strides);
  pointwise(mode, x, b, y);
  return y;
}

void GraphBuilder::pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value* b,
                             const Value& y) {
  add(Pointwise{.mode = mode, .x = x, .b = b, .y = y});
}

Value GraphBuilder::position(const Value& x, std::int64_t axis) {
  const Value y = virtual_tensor(x.extents, x.strides, CUDNN_DATA_INT32);
  add(Pointwise{.mode = CUDNN_POINTWISE_GEN_INDEX,
                .x = x,
                .y = y,
                .precision = CUDNN_DATA_INT32,
                .axis = axis});
  return y;
}

Value GraphBuilder::at_least(const Value& x, const Value& b) {
  const Value y = virtual_tensor(x.extents, x.strides, CUDNN_DATA_BOOLEAN);
  add(Pointwise{
      .mode = CUDNN_POINTWISE_CMP_GE, .x = x, .b = &b, .y = y, .precision = CUDNN_DATA_BOOLEAN});
  return y;
}

Value GraphBuilder::select(const Value& condition, const Value& yes, const Value& no) {
  const Value y = virtual_tensor(yes.extents, yes.strides);
  add(Pointwise{
      .mode = CUDNN_POINTWISE_BINARY_SELECT, .x = yes, .b = &no, .t = &condition, .y = y});
  return y;
}

void GraphBuilder::matmul(const Value& a, const Value& b, const Value& c) {
  Descriptor& description = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
  description.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  description.finalize();
  Descriptor& operation = part(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul operation");
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, description);
  add(operation);
}

void GraphBuilder::reduce(cudnnReduceTensorOp_t mode, const Value& x, const Value& y) {
  Descriptor& description = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
  description.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  description.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
  description.finalize();
  Descriptor& operation = part(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction operation");
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, description);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.descriptor);
  add(operation);
}

void GraphBuilder::reshape(const Value& x, const Value& y) {
  Descriptor& operation = part(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape operation");
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.descriptor);
  add(operation);
}

}  // namespace memfathom::cudnn
