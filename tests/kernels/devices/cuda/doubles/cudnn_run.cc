// What cuDNN's engines compute: convolutions by the reference loops, attention operation by
// operation as its graph says.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/devices/element/half.h"
#include "kernels/devices/element/load.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/cuda/doubles/cudnn_recorded.h"
#include "tests/kernels/devices/cuda/doubles/operand_view.h"

namespace memfathom::doubles {
namespace {

constexpr const char* kExecute = "cudnnBackendExecute";

Shape shape_of(const std::vector<std::int64_t>& numbers) {
  return Shape(std::span<const std::int64_t>(numbers));
}

DType type_of(std::int64_t type) {
  switch (type) {
    case CUDNN_DATA_HALF: return DType::kFp16;
    case CUDNN_DATA_BFLOAT16: return DType::kBf16;
    case CUDNN_DATA_INT32: return DType::kInt32;
    case CUDNN_DATA_BOOLEAN: return DType::kBool;
    default: return DType::kFp32;
  }
}

bool is_marked(const Recorded& tensor, int name) {
  const auto found = tensor.numbers.find(name);
  return found != tensor.numbers.end() && found->second.front() != 0;
}

void* given_pointer(const Recorded& tensor, const Recorded& pack) {
  const auto& ids = pack.numbers.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto& pointers = pack.pointers.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto found = std::find(ids.begin(), ids.end(), tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID));
  return found == ids.end() ? nullptr : pointers[static_cast<std::size_t>(found - ids.begin())];
}

// The operand that the variant pack gives for a tensor of the graph, on the host; absent when it
// gives none.
Operand operand_of(const Recorded& tensor, const Recorded& pack) {
  Operand operand{given_pointer(tensor, pack), type_of(tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE)),
                  shape_of(tensor.numbers.at(CUDNN_ATTR_TENSOR_DIMENSIONS)),
                  shape_of(tensor.numbers.at(CUDNN_ATTR_TENSOR_STRIDES))};
  const auto alignment =
      static_cast<std::uint64_t>(tensor.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
  if (reinterpret_cast<std::uint64_t>(operand.data) % alignment != 0) {
    refuse(kExecute, "a tensor is not aligned as its descriptor says", 0);
    operand.data = nullptr;
  }
  if (operand && !to_host(operand, kExecute, "a tensor")) operand.data = nullptr;
  return operand;
}

struct ConvolutionNames {
  ConvolutionKind kind;
  int x, w, y, description;
};

bool names_of(cudnnBackendDescriptorType_t type, ConvolutionNames& names) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      names = {ConvolutionKind::kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      names = {ConvolutionKind::kDataGradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      names = {ConvolutionKind::kWeightGradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC};
      return true;
    default: return false;
  }
}

// What a tensor core reads of an fp32 operand, as a copy in host memory.
class Truncated {
 public:
  explicit Truncated(const Operand& operand) : operand_(operand) {
    if (!machine().tf32 || operand.dtype != DType::kFp32) return;
    const auto bytes = static_cast<std::size_t>(size_of(operand.shape, operand.dtype).count());
    words_.resize(bytes / sizeof(std::uint32_t));
    std::memcpy(words_.data(), operand.data, bytes);
    for (std::uint32_t& word : words_) word &= 0xFFFFE000;
    operand_.data = words_.data();
  }
  const Operand& operand() const { return operand_; }

 private:
  Operand operand_;
  std::vector<std::uint32_t> words_;
};

std::string convolve(const Recorded& operation, const ConvolutionNames& names,
                     const Recorded& pack) {
  const Recorded& description = operation.part(names.description);
  const Operand x = operand_of(operation.part(names.x), pack);
  const Operand w = operand_of(operation.part(names.w), pack);
  const Operand y = operand_of(operation.part(names.y), pack);
  if (!x || !w || !y) return "a tensor of the graph has no device memory";
  ConvolutionCall call;
  call.query.kind = names.kind;
  call.query.input = x.shape;
  call.query.weight = w.shape;
  call.query.stride = shape_of(description.numbers.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
  call.query.padding = shape_of(description.numbers.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
  call.query.dilation = shape_of(description.numbers.at(CUDNN_ATTR_CONVOLUTION_DILATIONS));
  call.query.groups = x.shape[1] / w.shape[1];
  call.query.dtype = x.dtype;
  const Truncated read_x(x);
  const Truncated read_w(w);
  const Truncated read_y(y);
  call.x = read_x.operand();
  call.w = read_w.operand();
  call.dy = read_y.operand();
  call.dx = x;
  call.dw = w;
  call.y = y;
  run_reference(call);
  return {};
}

// Four dimensions, dense, in fp32: numbers between the operations of a graph.
struct Numbers {
  Shape extents;
  std::vector<float> values;

  explicit Numbers(const Shape& shape)
      : extents(shape), values(static_cast<std::size_t>(shape.elements())) {}
  // The element at `at`, an extent of 1 being repeated and one of a part being shared in groups.
  float& at(const Shape& whole, const std::array<std::int64_t, 4>& place) {
    std::int64_t index = 0;
    for (int d = 0; d < 4; ++d) {
      const std::int64_t group = whole[d] / extents[d];
      index = index * extents[d] + place[static_cast<std::size_t>(d)] / group;
    }
    return values[static_cast<std::size_t>(index)];
  }
};

template <typename Visit>
void for_each(const Shape& extents, Visit visit) {
  std::array<std::int64_t, 4> at{};
  for (at[0] = 0; at[0] < extents[0]; ++at[0])
    for (at[1] = 0; at[1] < extents[1]; ++at[1])
      for (at[2] = 0; at[2] < extents[2]; ++at[2])
        for (at[3] = 0; at[3] < extents[3]; ++at[3]) visit(at);
}

std::int64_t offset_of(const Shape& strides, const std::array<std::int64_t, 4>& at) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] + at[3] * strides[3];
}

// Runs the operations of an attention graph one after another. Values that are not in memory are
// kept by their number, rounded to their type.
class GraphRun {
 public:
  explicit GraphRun(const Recorded& pack) : pack_(pack) {}

  const std::string& refusal() const { return refusal_; }

  void run(const Recorded& operation) {
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return multiply(operation);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return pointwise(operation);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return reduce(operation);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return reshape(operation);
      default: refusal_ = "this double does not run such an operation";
    }
  }

 private:
  static Shape extents_of(const Recorded& tensor) {
    return shape_of(tensor.numbers.at(CUDNN_ATTR_TENSOR_DIMENSIONS));
  }

  Numbers read(const Recorded& tensor) {
    Numbers numbers(extents_of(tensor));
    if (is_marked(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      const auto found = kept_.find(tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID));
      if (found == kept_.end()) {
        refusal_ = "a value is used before it is computed";
        return numbers;
      }
      return found->second;
    }
    if (is_marked(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
      const void* host = given_pointer(tensor, pack_);
      if (host == nullptr || is_device_address(host)) {
        refusal_ = "a number given by value is not in host memory";
        return numbers;
      }
      std::memcpy(numbers.values.data(), host, sizeof(float));
      return numbers;
    }
    const Operand operand = operand_of(tensor, pack_);
    if (!operand) {
      refusal_ = "a tensor of the graph has no device memory";
      return numbers;
    }
    std::size_t i = 0;
    for_each(numbers.extents, [&](const auto& at) {
      numbers.values[i++] =
          element::load<float>(operand.data, operand.dtype, offset_of(operand.strides, at));
    });
    return numbers;
  }

  void write(const Recorded& tensor, Numbers numbers) {
    if (is_marked(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      const DType type = type_of(tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE));
      for (float& value : numbers.values) {
        double stored = 0;
        element::store<float>(&stored, type, 0, value);
        value = element::load<float>(&stored, type, 0);
      }
      kept_.insert_or_assign(tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID), std::move(numbers));
      return;
    }
    const Operand operand = operand_of(tensor, pack_);
    if (!operand) {
      refusal_ = "a tensor of the graph has no device memory";
      return;
    }
    std::size_t i = 0;
    for_each(numbers.extents, [&](const auto& at) {
      element::store<float>(operand.data, operand.dtype, offset_of(operand.strides, at),
                            numbers.values[i++]);
    });
  }

  void multiply(const Recorded& operation) {
    Numbers a = read(operation.part(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    Numbers b = read(operation.part(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    const Recorded& result = operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    Numbers c(extents_of(result));
    if (a.extents[3] != b.extents[2] || a.extents[2] != c.extents[2] ||
        b.extents[3] != c.extents[3]) {
      refusal_ = "the extents of a product do not fit";
      return;
    }
    const std::int64_t terms = a.extents[3];
    const Shape left{c.extents[0], c.extents[1], c.extents[2], terms};
    const Shape right{c.extents[0], c.extents[1], terms, c.extents[3]};
    for_each(c.extents, [&](const auto& at) {
      float sum = 0;
      for (std::int64_t i = 0; i < terms; ++i) {
        sum += a.at(left, {at[0], at[1], at[2], i}) * b.at(right, {at[0], at[1], i, at[3]});
      }
      c.at(c.extents, at) = sum;
    });
    write(result, std::move(c));
  }

  void pointwise(const Recorded& operation) {
    const Recorded& description = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const std::int64_t mode = description.number(CUDNN_ATTR_POINTWISE_MODE);
    const Recorded& result = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    Numbers y(extents_of(result));
    Numbers x = read(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    Numbers b = optional(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    Numbers t = optional(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const std::size_t axis =
        mode == CUDNN_POINTWISE_GEN_INDEX
            ? static_cast<std::size_t>(description.number(CUDNN_ATTR_POINTWISE_AXIS))
            : 0;
    for_each(y.extents, [&](const auto& at) {
      const float p = x.at(y.extents, at);
      const float q = b.at(y.extents, at);
      float& r = y.at(y.extents, at);
      switch (mode) {
        case CUDNN_POINTWISE_ADD: r = p + q; break;
        case CUDNN_POINTWISE_SUB: r = p - q; break;
        case CUDNN_POINTWISE_MUL: r = p * q; break;
        case CUDNN_POINTWISE_DIV: r = p / q; break;
        case CUDNN_POINTWISE_EXP: r = std::exp(p); break;
        case CUDNN_POINTWISE_LOG: r = std::log(p); break;
        case CUDNN_POINTWISE_IDENTITY: r = p; break;
        case CUDNN_POINTWISE_GEN_INDEX: r = static_cast<float>(at[axis]); break;
        case CUDNN_POINTWISE_CMP_GE: r = p >= q ? 1.0F : 0.0F; break;
        case CUDNN_POINTWISE_BINARY_SELECT: r = t.at(y.extents, at) != 0 ? p : q; break;
        default: refusal_ = "this double does not know such a function";
      }
    });
    write(result, std::move(y));
  }

  Numbers optional(const Recorded& operation, int name) {
    return operation.parts.contains(name) ? read(operation.part(name)) : Numbers({1, 1, 1, 1});
  }

  void reduce(const Recorded& operation) {
    const bool largest =
        operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).number(CUDNN_ATTR_REDUCTION_OPERATOR) ==
        CUDNN_REDUCE_TENSOR_MAX;
    Numbers x = read(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    const Recorded& result = operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    Numbers y(extents_of(result));
    if (largest) std::fill(y.values.begin(), y.values.end(), -INFINITY);
    for_each(x.extents, [&](const auto& at) {
      float& r = y.at(x.extents, at);
      const float p = x.at(x.extents, at);
      r = largest ? std::max(r, p) : r + p;
    });
    write(result, std::move(y));
  }

  // The same elements under other strides: here only exchanged dimensions occur.
  void reshape(const Recorded& operation) {
    const Recorded& source = operation.part(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    const Recorded& result = operation.part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    const Shape from = shape_of(source.numbers.at(CUDNN_ATTR_TENSOR_STRIDES));
    const Shape to = shape_of(result.numbers.at(CUDNN_ATTR_TENSOR_STRIDES));
    Numbers x = read(source);
    Numbers y(extents_of(result));
    if (from[2] != to[3] || from[3] != to[2] || x.extents[2] != y.extents[3]) {
      refusal_ = "this double reshapes by exchanging the last two dimensions only";
      return;
    }
    for_each(y.extents, [&](const auto& at) {
      y.at(y.extents, at) = x.at(x.extents, {at[0], at[1], at[3], at[2]});
    });
    write(result, std::move(y));
  }

  const Recorded& pack_;
  std::map<std::int64_t, Numbers> kept_;
  std::string refusal_;
};

}  // namespace

std::string run_graph(const std::vector<RecordedPtr>& operations, const Recorded& pack,
                      const EngineWorkspace& workspace) {
  ConvolutionNames names{};
  if (names_of(operations.front()->type, names)) return convolve(*operations.front(), names, pack);
  GraphRun run(pack);
  for (const RecordedPtr& operation : operations) {
    run.run(*operation);
    if (!run.refusal().empty()) return run.refusal();
    // NaN in every type: what was put into the engine's own workspace does not survive.
    if (workspace.bytes > 0) std::memset(workspace.host, 0xFF, workspace.bytes);
  }
  return {};
}

}  // namespace memfathom::doubles
