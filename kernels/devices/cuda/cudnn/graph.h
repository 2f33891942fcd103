// Graph: a cuDNN operation graph and the descriptors it is made of, built from a convolution or an
// attention.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/workspace.h"
#include "kernels/devices/cuda/cudnn/descriptor.h"

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
  kScale = 'a',
  kMasked = 'm',        // by value: what a masked score becomes
  kOne = '1',           // by value
  kRowSums = 'r',       // fp32 [batch, heads, queries, 1], in the workspace
  kDQSums = 'u',        // fp32, the query gradient while it is added up, in the workspace
  kFirstVirtual = 1000  // values that never reach memory are numbered from here
};

// PyTorch tells the alignment of its pointers, at most this; blocks of a caching allocator have
// more, views into them may have less.
constexpr std::int64_t kFullAlignment = 16;

// A convolution as cuDNN sees it: x [N, C, ...], w [K, C/groups, ...], y [N, K, ...], always with
// two or three spatial extents. The gradient of the data writes x, that of the weight writes w. A
// transposed convolution is the data gradient of an ordinary one, so its input is y here.
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

// From PyTorch's view of the call. One spatial extent becomes two (a height of 1), as PyTorch does.
// Throws Error(kInput) when the shapes contradict each other.
Convolution to_cudnn(const ConvolutionQuery& query);

class Graph {
 public:
  explicit Graph(const Convolution& convolution);
  // softmax(scale Q K^T) V, fused; query heads share key heads in groups; causal: query i sees keys
  // 0 to i. The backward pass reads the forward's output and statistics.
  explicit Graph(const AttentionQuery& attention);

  const Descriptor& descriptor() const { return graph_; }
  DType dtype() const { return dtype_; }

 private:
  friend class GraphBuilder;
  explicit Graph(DType dtype);

  DType dtype_;
  std::deque<Descriptor>
      parts_;  // tensors, operator descriptions, operations: alive with the graph
  std::vector<cudnnBackendDescriptor_t> operations_;
  Descriptor graph_;
};

}  // namespace memfathom::cudnn
