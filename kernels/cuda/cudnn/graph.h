// Graph: a cuDNN operation graph and the descriptors it is made of, built from a convolution or an
// attention.
#pragma once

#include <cstdint>
#include <deque>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/workspace.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace memfathom::cudnn {

// The tensors of a graph, by the names under which execute() is given their pointers.
enum TensorId : std::int64_t {
  kX = 'x',
  kY = 'y',
  kW = 'w',
  kQ = 'q',
  kK = 'k',
  kV = 'v',
  kO = 'o',
  kStats = 's',
  kDQ = 'Q',
  kDK = 'K',
  kDV = 'V',
  kDO = 'O',
  kScale = 'a'
};

// A convolution as cuDNN sees it: x [N, C, ...], w [K, C/groups, ...], y [N, K, ...], always with
// two or three spatial extents. The gradient of the data writes x, that of the weight writes w. A
// transposed convolution is the data gradient of an ordinary one, so its input is y here.
struct Convolution {
  ConvolutionKind kind = ConvolutionKind::kForward;
  DType dtype = DType::kFp32;
  bool channels_last = false;
  Shape x, w, y;
  Shape stride, padding, dilation;
};

// From PyTorch's view of the call. One spatial extent becomes two (a height of 1), as PyTorch does.
// Throws Error(kInput) when the shapes contradict each other.
Convolution to_cudnn(const ConvolutionQuery& query);

// softmax(scale Q K^T) V over [batch, heads, length, head size], fused. The backward pass reads the
// forward's output and statistics.
struct Attention {
  bool backward = false;
  DType dtype = DType::kFp16;
  std::int64_t batch = 1, heads = 1, key_heads = 1;
  std::int64_t queries = 1, keys = 1, head_size = 64;
};

class Graph {
 public:
  explicit Graph(const Convolution& convolution);
  explicit Graph(const Attention& attention);

  const Descriptor& descriptor() const { return graph_; }
  DType dtype() const { return dtype_; }

 private:
  const Descriptor& tensor(TensorId id, cudnnDataType_t type, const Shape& extents,
                           const Shape& strides, bool by_value = false);
  void finish();

  DType dtype_;
  std::deque<Descriptor>
      parts_;  // tensors, operator descriptions, operations: alive as long as the graph
  Descriptor operation_;
  Descriptor graph_;
};

}  // namespace memfathom::cudnn
