// The products and transforms of the wheel's cpu device at sizes around its blocks and factors.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/cpu/gemm.h"
#include "kernels/devices/cpu/portable/line_transform.h"

namespace memfathom::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(at(count));
  for (float& value : values) value = uniform(engine);
  return values;
}

struct Size {
  std::int64_t m, n, k;
};

class PortableProductTest : public ::testing::TestWithParam<Size> {};

TEST_P(PortableProductTest, IsTheSumOfProductsForBothFormsOfBothOperands) {
  const auto [m, n, k] = GetParam();
  auto a = random_floats(m * k, 1), b = random_floats(k * n, 2);
  const auto before = random_floats(m * n, 3);
  for (const bool flip_a : {false, true}) {
    for (const bool flip_b : {false, true}) {
      auto out = before;
      sgemm(m, n, k, 0.75f, {a.data(), flip_a ? m : k, flip_a}, {b.data(), flip_b ? k : n, flip_b},
            0.5f, out.data(), n);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            sum += double(a[at(flip_a ? l * m + i : i * k + l)]) *
                   double(b[at(flip_b ? j * k + l : l * n + j)]);
          }
          ASSERT_NEAR(out[at(i * n + j)], 0.75 * sum + 0.5 * double(before[at(i * n + j)]),
                      1e-6 * static_cast<double>(k + 1))
              << i << ", " << j;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PortableProductTest,
                         ::testing::Values(Size{1, 1, 1}, Size{6, 16, 256}, Size{7, 17, 257},
                                           Size{97, 33, 5}, Size{96, 2049, 3}, Size{200, 40, 600}));

TEST(PortableProductTest, AFactorOfZeroClearsWhatIsNoNumber) {
  float a = 2, b = 3, out = std::nanf("");
  sgemm(1, 1, 1, 1, {&a, 1, false}, {&b, 1, false}, 0, &out, 1);
  EXPECT_EQ(out, 6);
}

// Powers, mixed factors, the largest factor (31), primes above it, and twice such a prime.
TEST(PortableTransformTest, AgreesWithTheDefinitionForLengthsOfEveryKind) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 12, 30, 31, 32, 37, 64, 74, 101, 210, 1009}) {
    LineTransform transform(n);
    const auto parts = random_floats(2 * n, 4);
    std::vector<std::complex<double>> line(at(n));
    for (std::int64_t k = 0; k < n; ++k) line[at(k)] = {parts[at(2 * k)], parts[at(2 * k + 1)]};
    for (const int sign : {-1, 1}) {
      auto result = line;
      transform.run(result.data(), sign);
      for (std::int64_t k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          const double turn = static_cast<double>(k * j % n) / static_cast<double>(n);
          sum += line[at(j)] * std::polar(1.0, sign * 2 * std::numbers::pi * turn);
        }
        ASSERT_NEAR(std::abs(sum - result[at(k)]), 0, 1e-12 * static_cast<double>(n))
            << n << " at " << k;
      }
    }
  }
}

TEST(PortableDeviceTest, NamesItselfAndNoLibrary) {
  const Environment environment = CpuDevice(Bytes{1 << 20}).environment();
  EXPECT_EQ(environment.cudnn.rfind("memfathom ", 0), 0u);
  EXPECT_EQ(environment.cufft, environment.cudnn);
}

}  // namespace
}  // namespace memfathom::cpu
