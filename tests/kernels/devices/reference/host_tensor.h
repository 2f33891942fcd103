// HostTensor: a tensor in the test's own memory, any type and layout, filled from a fixed seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/devices/element/random.h"
#include "kernels/devices/element/split.h"

namespace memfathom::testing {

enum class Layout { kContiguous, kReversed, kGapped, kChannelsLast };

// kReversed: the dimensions lie in memory in the opposite order. kGapped: every element has an
// unused neighbour.
inline Shape strides_of(const Shape& shape, Layout layout) {
  Shape strides = element::contiguous_strides(shape);
  if (layout == Layout::kGapped) {
    for (std::int64_t& stride : strides) stride *= 2;
  } else if (layout == Layout::kReversed) {
    std::int64_t step = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      strides[d] = step;
      step *= shape[d];
    }
  } else if (layout == Layout::kChannelsLast) {
    std::int64_t step = shape[1];
    for (int d = shape.rank() - 1; d >= 2; --d) {
      strides[d] = step;
      step *= shape[d];
    }
    strides[1] = 1;
    strides[0] = step;
  }
  return strides;
}

class HostTensor {
 public:
  HostTensor() = default;
  explicit HostTensor(const Shape& shape, DType dtype = DType::kFp64,
                      Layout layout = Layout::kContiguous)
      : memory_(
            static_cast<std::size_t>(shape.elements() * element::element_bytes(dtype) * 2 + 64)) {
    operand_ = {memory_.data(), dtype, shape, strides_of(shape, layout)};
  }
  HostTensor(const HostTensor& other) : memory_(other.memory_), operand_(other.operand_) {
    operand_.data = data();
  }
  HostTensor& operator=(const HostTensor& other) {
    memory_ = other.memory_;
    operand_ = other.operand_;
    operand_.data = data();
    return *this;
  }

  // Uniform in [low, high), rounded to the type.
  static HostTensor random(const Shape& shape, std::uint64_t seed, DType dtype = DType::kFp64,
                           Layout layout = Layout::kContiguous, double low = -1, double high = 1) {
    HostTensor tensor(shape, dtype, layout);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double u =
          static_cast<double>(element::uniform(seed, 0, static_cast<std::uint64_t>(i)));
      tensor.set(i, low + (high - low) * u);
      if (is_complex(dtype)) {
        const float im = element::uniform(seed, 1, static_cast<std::uint64_t>(i)) * 2 - 1;
        tensor.lane().set<element::Complex>(i, {static_cast<float>(tensor.get(i)), im});
      }
    }
    return tensor;
  }
  static HostTensor of(const Shape& shape, const std::vector<double>& values,
                       DType dtype = DType::kFp64) {
    HostTensor tensor(shape, dtype);
    for (std::size_t i = 0; i < values.size(); ++i)
      tensor.set(static_cast<std::int64_t>(i), values[i]);
    return tensor;
  }

  const Operand& operand() const { return operand_; }
  operator const Operand&() const { return operand_; }
  std::int64_t size() const { return operand_.shape.elements(); }
  element::StridedSpan lane() const { return element::whole(operand_); }
  double get(std::int64_t i) const { return lane().get<double>(i); }
  void set(std::int64_t i, double value) { lane().set<double>(i, value); }
  // Real and imaginary parts one after the other for complex types.
  std::vector<double> values() const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < size(); ++i) {
      result.push_back(get(i));
      if (is_complex(operand_.dtype))
        result.push_back(static_cast<double>(lane().get<element::Complex>(i).im));
    }
    return result;
  }

 private:
  void* data() { return memory_.empty() ? nullptr : memory_.data(); }

  std::vector<unsigned char> memory_;
  Operand operand_;
};

// The largest |a - b| / (1 + |b|).
inline double distance(const HostTensor& a, const HostTensor& b) {
  const std::vector<double> x = a.values(), y = b.values();
  double worst = x.size() == y.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double difference = std::abs(x[i] - y[i]) / (1 + std::abs(y[i]));
    worst = difference <= worst ? worst : difference;  // a NaN is the worst
  }
  return worst;
}

}  // namespace memfathom::testing
