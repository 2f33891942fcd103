// Every layer's gradients against finite differences, over the reference loops in fp64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/devices/element/load.h"
#include "kernels/devices/selftest/layers.h"
#include "kernels/devices/selftest/reference_device.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom::selftest {
namespace {

// A layer with its input, whose numbers can be changed one by one.
class Subject {
 public:
  Subject(const LayerCase& layer_case, DType dtype) : builder_(session_, {.dtype = dtype}) {
    layer_ = layer_case.make(builder_);
    builder_.finish();
    Tensor x = session_.empty(layer_case.input, dtype);
    x.set_requires_grad(true);
    learned_.push_back(x);
    for (const Tensor& parameter : builder_.trainable()) learned_.push_back(parameter);
    std::uint64_t seed = 0;
    for (const Tensor& tensor : learned_) fill(device_, tensor, ++seed);
    for (const NamedTensor& buffer : builder_.buffers()) fill(device_, buffer.tensor, ++seed);
  }

  const std::vector<Tensor>& learned() const { return learned_; }

  Tensor loss() {
    const Tensor y = layer_(learned_.front());
    return sum_all(mul(y, y));
  }

  // Central differences of the loss by one number of a tensor.
  double slope(const Tensor& tensor, std::int64_t index, double step) {
    const NoGrad off(session_);
    const double value = number(tensor, index);
    set_number(tensor, index, value + step);
    const double above = number(loss(), 0);
    set_number(tensor, index, value - step);
    const double below = number(loss(), 0);
    set_number(tensor, index, value);
    return (above - below) / (2 * step);
  }

  // Treats complex numbers as pairs.
  static double number(const Tensor& tensor, std::int64_t index) {
    return element::load<double>(tensor.operand().data, type_of(tensor), index);
  }

 private:
  static DType type_of(const Tensor& tensor) {
    return is_complex(tensor.dtype()) ? DType::kFp32 : tensor.dtype();
  }
  static void set_number(const Tensor& tensor, std::int64_t index, double value) {
    element::store<double>(tensor.operand().data, type_of(tensor), index, value);
  }

  ReferenceDevice device_;
  CachingAllocator allocator_{device_.memory()};
  Session session_{device_, allocator_, device_.workspaces(), FrameworkPolicy{}};
  Builder builder_;
  TestLayer layer_;
  std::vector<Tensor> learned_;
};

std::int64_t numbers_of(const Tensor& tensor) {
  return tensor.elements() * (is_complex(tensor.dtype()) ? 2 : 1);
}

struct Precision {
  DType dtype = DType::kFp64;
  double step = 1e-5;
  double tolerance = 1e-4;  // statistics of norms are kept in fp32
};

// Layers that compute in fp32 whatever their type is: spectral weights are complex64, Llama's norm
// and the chunked loss widen 16 bits to that.
Precision precision_of(const std::string& layer) {
  for (const char* narrow : {"fno", "llama", "checkpointed", "chunked"})
    if (layer.starts_with(narrow)) return {DType::kFp32, 3e-3, 5e-3};
  return {};
}

class LayerGradientTest : public ::testing::TestWithParam<LayerCase> {};

TEST_P(LayerGradientTest, AgreesWithFiniteDifferences) {
  const Precision precision = precision_of(GetParam().name);
  Subject subject(GetParam(), precision.dtype);
  run_backward(subject.loss());
  for (const Tensor& tensor : subject.learned()) {
    ASSERT_TRUE(tensor.grad());
    const Tensor gradient = contiguous(tensor.grad());
    const std::int64_t stride = std::max<std::int64_t>(1, numbers_of(tensor) / 7);
    for (std::int64_t i = 0; i < numbers_of(tensor); i += stride) {
      const double wanted = subject.slope(tensor, i, precision.step);
      EXPECT_NEAR(Subject::number(gradient, i), wanted,
                  precision.tolerance * (1 + std::abs(wanted)))
          << to_string(tensor.shape()) << " at " << i;
    }
  }
}

std::vector<LayerCase> wide_cases() {
  std::vector<LayerCase> cases = layer_cases();
  std::erase_if(cases, [](const LayerCase& c) { return is_16bit_float(c.dtype); });
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<LayerCase>& layer_case) {
  std::string name = layer_case.param.name;
  std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerGradientTest, ::testing::ValuesIn(wide_cases()), name_of);

}  // namespace
}  // namespace memfathom::selftest
