#include "kernels/devices/cpu/convolution_operands.h"

#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"

namespace memfathom::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;

bool same_layout(const Operand& t, const Shape& strides) {
  for (int d = 0; d < t.shape.rank(); ++d) {
    if (t.shape[d] != 1 && t.strides[d] != strides[d]) return false;
  }
  return true;
}

void convert(const Operand& from, const Operand& to) {
  ElementwiseCall copy;
  copy.op = Elementwise::kCopy;
  copy.a = from;
  copy.out = to;
  run_loops(copy);
}

}  // namespace

Shape result_shape(const ConvolutionQuery& query) {
  const std::int64_t features = query.transposed ? query.weight[1] * query.groups : query.weight[0];
  Shape shape{query.input[0], features};
  for (int d = 0; d < query.stride.rank(); ++d) {
    const std::int64_t in = query.input[d + 2],
                       reach = query.dilation[d] * (query.weight[d + 2] - 1);
    if (query.transposed) {
      const std::int64_t extra = query.output_padding.rank() > d ? query.output_padding[d] : 0;
      shape.push_back((in - 1) * query.stride[d] - 2 * query.padding[d] + reach + extra + 1);
    } else {
      shape.push_back((in + 2 * query.padding[d] - reach - 1) / query.stride[d] + 1);
    }
  }
  return shape;
}

ConvolutionKind written(const ConvolutionQuery& query) {
  if (!query.transposed || query.kind == ConvolutionKind::kWeightGradient) return query.kind;
  return query.kind == ConvolutionKind::kForward ? ConvolutionKind::kDataGradient
                                                 : ConvolutionKind::kForward;
}

Shape layout_strides(const Shape& shape, bool channels_last) {
  if (!channels_last) return element::contiguous_strides(shape);
  Shape strides = shape;
  std::int64_t step = shape[1];
  for (int d = shape.rank() - 1; d >= 2; --d) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[1] = 1;
  strides[0] = step;
  return strides;
}

void place(Piece& piece, std::int64_t size, std::int64_t& workspace) {
  piece = {workspace, size};
  workspace += (size + kAlignment - 1) / kAlignment * kAlignment;
}

Side::Side(const Operand& t, bool channels_last, void* copy) : operand_(t) {
  const Shape strides = layout_strides(t.shape, channels_last);
  if (t.dtype == DType::kFp32 && same_layout(t, strides)) {
    data_ = t.data;
    return;
  }
  if (copy == nullptr) {
    own_ = scratch<float>(t.shape.elements());
    copy = own_.get();
  }
  data_ = copy;
  dense_ = {copy, DType::kFp32, t.shape, strides};
}

void Side::read() const {
  if (dense_) convert(operand_, dense_);
}

void Side::write_back() const {
  if (dense_) convert(dense_, operand_);
}

}  // namespace memfathom::cpu
