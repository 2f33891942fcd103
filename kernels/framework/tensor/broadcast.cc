#include "kernels/framework/tensor/broadcast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "kernels/framework/tensor/layout.h"

namespace memfathom {
namespace {

Shape broadcast_strides(const Tensor& tensor, const Shape& shape) {
  Shape strides = shape;
  const int missing = shape.rank() - tensor.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < missing || (tensor.size(i - missing) == 1 && shape[i] != 1);
    strides[i] = repeated ? 0 : tensor.strides()[i - missing];
  }
  return strides;
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const int missing = longer.rank() - shorter.rank();
  for (int i = missing; i < longer.rank(); ++i) {
    const std::int64_t x = longer[i];
    const std::int64_t y = shorter[i - missing];
    if (x != y && x != 1 && y != 1) {
      throw Error(
          ErrorKind::kInput,
          fmt::format(
              "tensors of shapes {} and {} cannot be combined: the layers do not fit together",
              to_string(a), to_string(b)));
    }
    result[i] = x == 1 ? y : x;
  }
  return result;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const auto rank = [](DType type) {
    switch (type) {
      case DType::kComplex64: return 6;
      case DType::kFp64: return 5;
      case DType::kFp32: return 4;
      case DType::kFp16:
      case DType::kBf16: return 3;
      case DType::kInt64: return 2;
      case DType::kInt32:
      case DType::kInt8:
      case DType::kUint8:
      case DType::kBool:
      case DType::kNf4: break;
    }
    return 1;
  };
  if (is_16bit_float(a) && is_16bit_float(b)) return DType::kFp32;
  return rank(a) >= rank(b) ? a : b;
}

Shape result_strides(const Shape& shape, std::initializer_list<const Tensor*> inputs) {
  const auto all = [&](bool (*has_layout)(const Tensor&)) {
    return std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
      return input->shape() == shape && has_layout(*input);
    });
  };
  if (all([](const Tensor& input) { return input.is_contiguous(); }))
    return contiguous_strides(shape);
  // The second operand of a lone input may be a number, which PyTorch treats as a tensor of another
  // shape.
  if (shape.rank() == 4 && inputs.size() > 1 && all(is_channels_last_contiguous))
    return channels_last_strides(shape);

  const int rank = shape.rank();
  std::array<int, Shape::kMaxRank> order{};  // innermost first
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = rank - 1 - i;
  std::array<Shape, 4> strides;
  std::size_t count = 0;
  for (const Tensor* input : inputs) strides[count++] = broadcast_strides(*input, shape);

  // > 0: `inner` belongs outside of `outer`; 0: the inputs do not determine the order.
  const auto compare = [&](int inner, int outer) {
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t a = strides[k][inner];
      const std::int64_t b = strides[k][outer];
      if (a == 0 || b == 0) continue;
      if (a != b) return a < b ? -1 : 1;
      if (shape[inner] > shape[outer]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < rank; ++i) {
    int moving = i;
    for (int j = i - 1; j >= 0; --j) {
      const int verdict =
          compare(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(moving)]);
      if (verdict < 0) break;
      if (verdict > 0) {
        std::swap(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(moving)]);
        moving = j;
      }
    }
  }
  Shape result = shape;
  std::int64_t step = 1;
  for (int i = 0; i < rank; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    result[dim] = step;
    step *= shape[dim];
  }
  return result;
}

Operand broadcast_operand(const Tensor& tensor, const Shape& shape) {
  Operand operand = tensor.operand();
  operand.strides = broadcast_strides(tensor, shape);
  operand.shape = shape;
  return operand;
}

}  // namespace memfathom
