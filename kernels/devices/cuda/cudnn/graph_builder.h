// GraphBuilder: adds tensors and operations to a Graph, one call per operation.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/devices/cuda/cudnn/graph.h"

namespace memfathom::cudnn {

// Throws Error(kInput) for an unsupported type.
cudnnDataType_t to_cudnn(DType type);

// A tensor of a graph; it lives as long as the graph.
struct Value {
  const Descriptor* descriptor = nullptr;
  Shape extents;
  Shape strides;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  // `alignment`: a divisor of the tensor's address.
  Value tensor(TensorId id, cudnnDataType_t type, const Shape& extents, const Shape& strides,
               std::int64_t alignment = kFullAlignment);
  // An fp32 scalar, passed by value from host memory with the pointers.
  Value scalar(TensorId id);
  // An intermediate value that never reaches memory.
  Value virtual_tensor(const Shape& extents, const Shape& strides,
                       cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // y = mode(x, b), b broadcast to x; the first form creates y: fp32, with x's extents.
  Value pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value* b = nullptr);
  void pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value* b, const Value& y);
  // The index of each element of x along `axis`.
  Value position(const Value& x, std::int64_t axis);
  Value at_least(const Value& x, const Value& b);
  Value select(const Value& condition, const Value& yes, const Value& no);

  void matmul(const Value& a, const Value& b, const Value& c);
  // y = x reduced over the dimensions in which y is smaller.
  void reduce(cudnnReduceTensorOp_t mode, const Value& x, const Value& y);
  // y = the elements of x with other extents and strides.
  void reshape(const Value& x, const Value& y);

  // For operations without a function above.
  Descriptor& part(cudnnBackendDescriptorType_t type, const char* what);
  void add(Descriptor& operation);

  void finish();

 private:
  enum class Placement { kMemory, kByValue, kVirtualTensor };
  Value add_tensor(std::int64_t id, cudnnDataType_t type, const Shape& extents,
                   const Shape& strides, Placement place, std::int64_t alignment = kFullAlignment);

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    const Value& x;
    const Value* b = nullptr;
    const Value* t = nullptr;
    const Value& y;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;
  };
  void add(const Pointwise& pointwise);

  Graph& graph_;
  std::int64_t next_virtual_ = kFirstVirtual;
};

}  // namespace memfathom::cudnn
