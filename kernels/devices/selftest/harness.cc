#include "kernels/devices/selftest/harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"
#include "kernels/devices/element/random.h"
#include "kernels/devices/element/split.h"

namespace memfathom::selftest {
namespace {

constexpr std::uint64_t kSeed = 20240607;

std::size_t bytes_of(DType type) { return static_cast<std::size_t>(bits_of(type) / 8); }

// Bytes from the first to one past the last element that the strides reach.
std::size_t extent_of(const Operand& operand) {
  std::int64_t last = 0;
  for (int d = 0; d < operand.shape.rank(); ++d)
    last += (operand.shape[d] - 1) * operand.strides[d];
  return operand.shape.elements() == 0
             ? 0
             : static_cast<std::size_t>(last + 1) * bytes_of(operand.dtype);
}

// Device copies of host memory, freed at the end. Operands with the same host address share a copy.
class DeviceCopies {
 public:
  explicit DeviceCopies(Device& device) : device_(device) {}
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  ~DeviceCopies() {
    for (const auto& [host, copy] : copies_) {
      try {
        device_.memory().release(copy.address, copy.size);
      } catch (const Error&) {  // an unusable device keeps its memory until the process ends
      }
    }
  }

  void move(const std::vector<Operand*>& operands) {
    std::map<void*, std::size_t> extents;
    for (const Operand* operand : operands) {
      if (*operand) extents[operand->data] = std::max(extents[operand->data], extent_of(*operand));
    }
    for (const auto& [host, bytes] : extents) copies_[host] = copy_of(host, bytes);
    for (Operand* operand : operands) {
      if (*operand) operand->data = reinterpret_cast<void*>(copies_[operand->data].address);
    }
  }

  std::vector<double> read_back(const Operand& host) {
    const Copy& copy = copies_.at(host.data);
    std::vector<double> content((extent_of(host) + sizeof(double) - 1) / sizeof(double));
    device_.copy_to_host(content.data(), reinterpret_cast<void*>(copy.address),
                         Bytes{static_cast<std::int64_t>(extent_of(host))});
    return content;
  }

 private:
  struct Copy {
    std::uint64_t address = 0;
    Bytes size;
  };

  Copy copy_of(void* host, std::size_t bytes) {
    const Bytes size = Bytes{static_cast<std::int64_t>(bytes)}.rounded_up(Bytes{4096});
    const auto address = device_.memory().allocate(size, 0);
    if (!address)
      throw Error(ErrorKind::kOutOfMemory,
                  "selftest: the device is out of memory for " + to_string(size));
    device_.copy_from_host(reinterpret_cast<void*>(*address), host,
                           Bytes{static_cast<std::int64_t>(bytes)});
    return {*address, size};
  }

  Device& device_;
  std::map<void*, Copy> copies_;
};

double difference_of(double got, double wanted) {
  if (std::isnan(got) && std::isnan(wanted)) return 0;
  if (got == wanted) return 0;  // also infinities
  const double difference = std::abs(got - wanted) / (1 + std::abs(wanted));
  return std::isnan(difference) ? HUGE_VAL : difference;
}

double largest_difference(const Operand& got, const Operand& wanted) {
  const element::StridedSpan a = element::whole(got);
  const element::StridedSpan b = element::whole(wanted);
  double worst = 0;
  for (std::int64_t i = 0; i < wanted.shape.elements(); ++i) {
    if (is_complex(got.dtype)) {
      const auto x = a.get<element::Complex>(i);
      const auto y = b.get<element::Complex>(i);
      worst = std::max({worst, difference_of(x.re, y.re), difference_of(x.im, y.im)});
    } else {
      worst = std::max(worst, difference_of(a.get<double>(i), b.get<double>(i)));
    }
  }
  return worst;
}

}  // namespace

double Tolerance::of(DType type) const {
  switch (type) {
    case DType::kFp32:
    case DType::kComplex64: return fp32;
    case DType::kFp16: return fp16;
    case DType::kBf16: return bf16;
    case DType::kFp64: return fp64;
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kNf4: break;  // exact
  }
  return 0;
}

double Tensors::next() { return static_cast<double>(element::uniform(kSeed, 0, drawn_++)); }

Operand Tensors::make(DType type, const Shape& shape, const Shape& strides, std::int64_t elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * bytes_of(type);
  std::vector<double>& buffer = buffers_.emplace_back(bytes / sizeof(double) + 1);
  return {buffer.data(), type, shape, strides};
}

Operand Tensors::filled(DType type, const Shape& shape, double value) {
  const Operand operand = make(type, shape, element::contiguous_strides(shape), shape.elements());
  const element::StridedSpan lane = element::whole(operand);
  for (std::int64_t i = 0; i < shape.elements(); ++i) lane.set<double>(i, value);
  return operand;
}

namespace {

template <typename Next>
Operand fill(Operand operand, double low, double high, Next next) {
  const element::StridedSpan lane = element::whole(operand);
  for (std::int64_t i = 0; i < operand.shape.elements(); ++i) {
    double value = low + (high - low) * next();
    if (operand.dtype == DType::kBool) value = value < (low + high) / 2 ? 0 : 1;
    if (!is_floating(operand.dtype) && !is_complex(operand.dtype)) value = std::floor(value);
    if (is_complex(operand.dtype)) {
      const auto imaginary = static_cast<float>(low + (high - low) * next());
      lane.set<element::Complex>(i, element::Complex(static_cast<float>(value), imaginary));
    } else {
      lane.set<double>(i, value);
    }
  }
  return operand;
}

}  // namespace

Operand Tensors::uniform(DType type, const Shape& shape, double low, double high) {
  const Operand operand = make(type, shape, element::contiguous_strides(shape), shape.elements());
  return fill(operand, low, high, [this] { return next(); });
}

Operand Tensors::strided(DType type, const Shape& shape, double low, double high) {
  Shape strides = shape;
  std::int64_t step = 2;
  for (int d = 0; d < shape.rank(); ++d) {
    strides[d] = step;
    step *= shape[d];
  }
  return fill(make(type, shape, strides, step), low, high, [this] { return next(); });
}

Operand Tensors::channels_last(DType type, const Shape& shape, double low, double high) {
  Shape strides = shape;
  std::int64_t step = shape[1];
  strides[1] = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (d == 1) continue;
    strides[d] = step;
    step *= shape[d];
  }
  return fill(make(type, shape, strides, step), low, high, [this] { return next(); });
}

Operand transposed(Operand operand) {
  std::swap(operand.shape[-1], operand.shape[-2]);
  std::swap(operand.strides[-1], operand.strides[-2]);
  return operand;
}

Operand repeated(Operand operand, int dim) {
  operand.strides[dim] = 0;
  return operand;
}

void Harness::run_case(const std::string& name, const std::vector<Operand>& compared,
                       const std::vector<Operand*>& operands, const std::function<void()>& run,
                       const std::function<void()>& reference, const Tolerance& tolerance) {
  SelftestCase result{name, 0, 0, ""};
  try {
    DeviceCopies copies(device_);
    copies.move(operands);
    run();
    device_.synchronize();
    reference();
    for (const Operand& wanted : compared) {
      std::vector<double> content = copies.read_back(wanted);
      Operand got = wanted;
      got.data = content.data();
      result.difference = std::max(result.difference, largest_difference(got, wanted));
      result.tolerance = std::max(result.tolerance, tolerance.of(wanted.dtype));
    }
  } catch (const Error& error) {
    result.failure = error.what();
  }
  report_.cases.push_back(std::move(result));
}

}  // namespace memfathom::selftest
