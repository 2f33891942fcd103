// Attention in the form that cuDNN's fused engines recognize: products, the parts of the softmax
// and, backward, their gradients, as cuDNN's guide to fused attention describes.
#include "kernels/devices/cuda/cudnn/attention_graph.h"

#include "kernels/devices/cuda/cudnn/graph_builder.h"

namespace memfathom::cudnn {
namespace {

// [batch, length, heads, size] in memory, as PyTorch's projections produce it.
Shape projected(const Shape& extents) {
  return {extents[1] * extents[2] * extents[3], extents[3], extents[1] * extents[3], 1};
}

Shape dense(const Shape& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

Shape transposed(const Shape& shape) { return {shape[0], shape[1], shape[3], shape[2]}; }

// The extents and the tensors by name.
class AttentionTensors {
 public:
  AttentionTensors(GraphBuilder& builder, const AttentionQuery& attention)
      : builder_(builder), attention_(attention), type_(to_cudnn(attention.dtype)) {}

  const Shape& queries() const { return attention_.q; }
  const Shape& keys() const { return attention_.k; }
  // Keys repeated for every query head: before the heads of a group are summed.
  Shape all_keys() const { return {keys()[0], queries()[1], keys()[2], keys()[3]}; }
  Shape scores() const { return {queries()[0], queries()[1], queries()[2], keys()[2]}; }
  Shape rows() const { return {queries()[0], queries()[1], queries()[2], 1}; }

  cudnnDataType_t type() const { return type_; }

  Value given(TensorId id, const Shape& extents, const Shape& strides) {
    return builder_.tensor(id, type_, extents, strides.rank() == 0 ? projected(extents) : strides);
  }
  // cuDNN does not transpose: the second factor of Q K^T is K's transpose.
  Value given_transposed(TensorId id, const Shape& extents, const Shape& strides) {
    return builder_.tensor(id, type_, transposed(extents),
                           transposed(strides.rank() == 0 ? projected(extents) : strides));
  }
  Value fp32(TensorId id, const Shape& extents) {
    return builder_.tensor(id, CUDNN_DATA_FLOAT, extents, dense(extents));
  }
  Value virtual_tensor(const Shape& extents) {
    return builder_.virtual_tensor(extents, dense(extents));
  }

  // scale Q K^T.
  Value scaled_scores(const Value& q, const Value& kt, const Value& scale) {
    const Value product = virtual_tensor(scores());
    builder_.matmul(q, kt, product);
    return builder_.pointwise(CUDNN_POINTWISE_MUL, product, &scale);
  }

  Value masked(const Value& x) {
    if (!attention_.causal) return x;
    const Value below = builder_.scalar(kMasked);
    const Value row = builder_.position(x, 2);
    const Value column = builder_.position(x, 3);
    const Value seen = builder_.at_least(row, column);
    return builder_.select(seen, x, below);
  }

 private:
  GraphBuilder& builder_;
  const AttentionQuery& attention_;
  cudnnDataType_t type_;
};

void build_forward(GraphBuilder& builder, const AttentionQuery& attention) {
  AttentionTensors t(builder, attention);
  const Value q = t.given(kQ, t.queries(), attention.strides.q);
  const Value kt = t.given_transposed(kK, t.keys(), attention.strides.k);
  const Value v = t.given(kV, t.keys(), attention.strides.v);
  const Value scale = builder.scalar(kScale);
  const Value scores = t.masked(t.scaled_scores(q, kt, scale));

  const Value largest = t.virtual_tensor(t.rows());
  builder.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const Value shifted = builder.pointwise(CUDNN_POINTWISE_SUB, scores, &largest);
  const Value exponentials = builder.pointwise(CUDNN_POINTWISE_EXP, shifted);
  const Value sum = t.virtual_tensor(t.rows());
  builder.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  const Value logarithm = builder.pointwise(CUDNN_POINTWISE_LOG, sum);
  const Value stats = t.fp32(kStats, t.rows());
  builder.pointwise(CUDNN_POINTWISE_ADD, largest, &logarithm, stats);
  const Value weights = builder.virtual_tensor(scores.extents, scores.strides, t.type());
  builder.pointwise(CUDNN_POINTWISE_DIV, exponentials, &sum, weights);

  builder.matmul(weights, v, t.given(kO, t.queries(), attention.strides.out));
}

// c = a^T b for the gradients of keys and values; summed over the heads of a group.
void add_up(GraphBuilder& builder, AttentionTensors& t, const Value& a, const Value& b,
            const Value& c) {
  const Value turned =
      builder.virtual_tensor(transposed(a.extents), transposed(a.strides), t.type());
  builder.reshape(a, turned);
  if (c.extents[1] == a.extents[1]) return builder.matmul(turned, b, c);
  const Value of_every_head = builder.virtual_tensor(t.all_keys(), dense(t.all_keys()), t.type());
  builder.matmul(turned, b, of_every_head);
  builder.reduce(CUDNN_REDUCE_TENSOR_ADD, of_every_head, c);
}

void build_backward(GraphBuilder& builder, const AttentionQuery& attention) {
  AttentionTensors t(builder, attention);
  const Value q = t.given(kQ, t.queries(), attention.strides.q);
  const Value kt = t.given_transposed(kK, t.keys(), attention.strides.k);
  const Value vt = t.given_transposed(kV, t.keys(), attention.strides.v);
  const Value o = t.given(kO, t.queries(), attention.strides.out);
  const Value d_o = t.given(kDO, t.queries(), attention.strides.dout);
  const Value stats = t.fp32(kStats, t.rows());
  const Value scale = builder.scalar(kScale);
  const Value one = builder.scalar(kOne);

  // The softmax part of the gradient: sum(dO * O) of each row.
  const Value products = builder.pointwise(CUDNN_POINTWISE_MUL, d_o, &o);
  const Value sums = t.virtual_tensor(t.rows());
  builder.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const Value row_sums = t.fp32(kRowSums, t.rows());
  builder.pointwise(CUDNN_POINTWISE_MUL, sums, &one, row_sums);

  const Value scores = t.scaled_scores(q, kt, scale);
  const Value logs = t.masked(builder.pointwise(CUDNN_POINTWISE_SUB, scores, &stats));
  const Value weights = builder.pointwise(CUDNN_POINTWISE_EXP, logs);
  add_up(builder, t, weights, d_o, t.given(kDV, t.keys(), attention.strides.dv));

  const Value d_weights = t.virtual_tensor(t.scores());
  builder.matmul(d_o, vt, d_weights);
  const Value centred = builder.pointwise(CUDNN_POINTWISE_SUB, d_weights, &row_sums);
  const Value d_logs = builder.pointwise(CUDNN_POINTWISE_MUL, centred, &weights);
  const Value d_scores = builder.pointwise(CUDNN_POINTWISE_MUL, d_logs, &scale);
  add_up(builder, t, d_scores, q, t.given(kDK, t.keys(), attention.strides.dk));

  const Value k = builder.virtual_tensor(transposed(kt.extents), transposed(kt.strides), t.type());
  builder.reshape(kt, k);
  const Value dq_sums = t.fp32(kDQSums, t.queries());
  builder.matmul(d_scores, k, dq_sums);
  builder.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sums, nullptr,
                    t.given(kDQ, t.queries(), attention.strides.dq));
}

}  // namespace

AttentionScratch scratch_of(const AttentionQuery& attention) {
  if (!attention.backward) return {};
  const std::int64_t rows = attention.q[0] * attention.q[1] * attention.q[2];
  return {.dq_sums = Bytes{rows * attention.q[3] * 4}, .row_sums = Bytes{rows * 4}};
}

Graph::Graph(const AttentionQuery& attention) : Graph(attention.dtype) {
  GraphBuilder builder(*this);
  if (attention.backward) {
    build_backward(builder, attention);
  } else {
    build_forward(builder, attention);
  }
  builder.finish();
}

}  // namespace memfathom::cudnn
