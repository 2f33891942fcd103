// Graph: a cuDNN operation graph and its descriptors, built from a convolution or an attention.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/workspace.h"
#include "kernels/devices/cuda/cudnn/descriptor.h"

namespace memfathom::cudnn {

// The tensors of a graph; execute() binds pointers by these names.
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
  kScale = 'a',
  kMasked = 'm',        // by value: the value of a masked score
  kOne = '1',           // by value
  kRowSums = 'r',       // fp32 [batch, heads, queries, 1], in the workspace
  kDQSums = 'u',        // fp32, the accumulator of the query gradient, in the workspace
  kFirstVirtual = 1000  // intermediate values that never reach memory are numbered from here
};

// PyTorch passes the alignment of its pointers, at most this; blocks of a caching allocator are
// aligned to more, views into them may be aligned to less.
constexpr std::int64_t kFullAlignment = 16;

// A convolution in cuDNN's terms: x [N, C, ...], w [K, C/groups, ...], y [N, K, ...], always 2-D or
// 3-D. The data gradient writes x, the weight gradient w. A transposed convolution is the data
// gradient of an ordinary one, so its input is y here.
struct Convolution {
  ConvolutionKind kind = ConvolutionKind::kForward;
  DType dtype = DType::kFp32;
  bool channels_last = false;
  Shape x, w, y;
  Shape stride, padding, dilation;
  struct Alignment {
    std::int64_t x = kFullAlignment, w = kFullAlignment, y = kFullAlignment;
    bool operator==(const Alignment&) const = default;
  };
  Alignment alignment;
};

// From PyTorch's arguments. 1-D becomes 2-D (a height of 1), as in PyTorch. Throws Error(kInput) if
// the shapes are inconsistent.
Convolution to_cudnn(const ConvolutionQuery& query);

class Graph {
 public:
  explicit Graph(const Convolution& convolution);
  // softmax(scale Q K^T) V, fused; query heads share key heads in groups; causal: query i attends
  // to keys 0 to i. Backward reads the forward pass's output and statistics.
  explicit Graph(const AttentionQuery& attention);

  const Descriptor& descriptor() const { return graph_; }
  DType dtype() const { return dtype_; }

 private:
  friend class GraphBuilder;
  explicit Graph(DType dtype);

  DType dtype_;
  std::deque<Descriptor> parts_;  // tensors, operators, operations: they live as long as the graph
  std::vector<cudnnBackendDescriptor_t> operations_;
  Descriptor graph_;
};

}  // namespace memfathom::cudnn
