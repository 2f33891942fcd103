// The cpu device's own loops against the reference, over types and layouts.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;

struct Form {
  const char* name;
  DType dtype;
  Layout layout;
};

// One rounding of the result, twice: the reference's and the device's may fall on either side.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFp64: return 1e-12;
    case DType::kFp32: return 1e-5;
    case DType::kFp16: return 2e-3;
    default: return 1.6e-2;
  }
}

class CpuLoopsTest : public ::testing::TestWithParam<Form> {
 protected:
  HostTensor random(const Shape& shape, std::uint64_t seed, double low = -1,
                    double high = 1) const {
    return HostTensor::random(shape, seed, GetParam().dtype, GetParam().layout, low, high);
  }
  HostTensor empty(const Shape& shape) const {
    return HostTensor(shape, GetParam().dtype, GetParam().layout);
  }
  double near() const { return tolerance(GetParam().dtype); }

  CpuDevice device{Bytes{1 << 20}};
};

TEST_P(CpuLoopsTest, ElementwiseOperationsAgree) {
  const Shape shape{7, 5, 60};  // more than one stretch, the last one short
  const HostTensor a = random(shape, 1, 0.1, 0.9), b = random(shape, 2, 0.1, 0.9),
                   c = random(shape, 3, 0.1, 0.9);
  for (int op = 0; op <= static_cast<int>(Elementwise::kBceBackward); ++op) {
    HostTensor expected = empty(shape), actual = empty(shape);
    ElementwiseCall call{static_cast<Elementwise>(op), expected, a, b, c, {0.7, 1.5, 0, 0}};
    run_reference(call);
    call.out = actual;
    device.run(call);
    EXPECT_LE(distance(actual, expected), near()) << op;
  }
}

TEST_P(CpuLoopsTest, BroadcastOperandsAgree) {
  const HostTensor a = random({1, 30}, 1), b = random({40, 1}, 2);
  HostTensor expected = empty({40, 30}), actual = empty({40, 30});
  ElementwiseCall call{Elementwise::kAdd, expected, a, b, {}, {2}};
  run_reference(call);
  call.out = actual;
  device.run(call);
  EXPECT_LE(distance(actual, expected), near());
}

TEST_P(CpuLoopsTest, ReductionsAgree) {
  const HostTensor in = random({6, 5, 40}, 1);
  for (const Shape& shape :
       {Shape{6, 5, 1}, Shape{1, 5, 40}, Shape{1, 5, 1}, Shape{6, 1, 40}, Shape{1, 1, 1}}) {
    for (const Reduction op : {Reduction::kSum, Reduction::kMean, Reduction::kMax}) {
      HostTensor expected = empty(shape), actual = empty(shape);
      run_reference(ReduceCall{op, expected, in});
      device.run(ReduceCall{op, actual, in});
      EXPECT_LE(distance(actual, expected), near()) << to_string(shape);
    }
  }
}

TEST_P(CpuLoopsTest, SoftmaxesAgree) {
  const Shape shape{4, 33, 6};
  const HostTensor x = random(shape, 1, -5, 5), dy = random(shape, 2);
  for (const Softmax op : {Softmax::kSoftmax, Softmax::kLogSoftmax}) {
    for (int dim = 0; dim < 3; ++dim) {
      HostTensor y = empty(shape), expected = empty(shape), actual = empty(shape);
      run_reference(SoftmaxCall{op, false, dim, y, x, {}});
      device.run(SoftmaxCall{op, false, dim, actual, x, {}});
      EXPECT_LE(distance(actual, y), near());
      run_reference(SoftmaxCall{op, true, dim, expected, dy, y});
      device.run(SoftmaxCall{op, true, dim, actual, dy, y});
      EXPECT_LE(distance(actual, expected), near());
    }
  }
}

TEST_P(CpuLoopsTest, MaskedScoresBecomeZeroProbabilities) {
  HostTensor x = random({3, 40}, 1), y = empty({3, 40}), expected = empty({3, 40});
  for (std::int64_t i = 0; i < 120; i += 3) x.set(i, -std::numeric_limits<double>::infinity());
  run_reference(SoftmaxCall{Softmax::kSoftmax, false, -1, expected, x, {}});
  device.run(SoftmaxCall{Softmax::kSoftmax, false, -1, y, x, {}});
  EXPECT_LE(distance(y, expected), near());
}

TEST_P(CpuLoopsTest, NormsAgree) {
  struct Case {
    Norm op;
    Shape shape;
    std::int64_t groups, features, statistics;
    bool training;
  };
  for (const Case& c : {Case{Norm::kLayer, {6, 4, 48}, 1, 48, 24, true},
                        Case{Norm::kRms, {10, 33}, 1, 33, 10, true},
                        Case{Norm::kGroup, {3, 8, 5, 7}, 4, 8, 12, true},
                        Case{Norm::kBatch, {4, 6, 5, 3}, 1, 6, 6, true},
                        Case{Norm::kBatch, {4, 6, 9}, 1, 6, 6, false}}) {
    const HostTensor x = random(c.shape, 1, -1, 4), weight = random({c.features}, 2),
                     bias = random({c.features}, 3);
    const HostTensor dy = random(c.shape, 4);
    HostTensor results[2][7];
    for (const bool by_device : {false, true}) {
      HostTensor* r = results[by_device ? 1 : 0];
      r[0] = empty(c.shape);
      r[1] = HostTensor({c.statistics}, DType::kFp32);
      r[2] = HostTensor({c.statistics}, DType::kFp32);
      r[3] = empty(c.shape);
      r[4] = empty({c.features});
      r[5] = empty({c.features});
      r[6] = HostTensor::random({c.features}, 5, DType::kFp32, Layout::kContiguous, 0.5, 1);
      NormCall call;
      call.op = c.op;
      call.groups = c.groups;
      call.training = c.training;
      call.x = x;
      call.weight = weight;
      call.bias = bias;
      call.y = r[0];
      if (c.op != Norm::kRms) call.mean = r[1];
      call.rstd = r[2];
      if (c.op == Norm::kBatch) {
        call.running_mean = r[6];
        call.running_var = r[6];
      }
      by_device ? device.run(call) : run_reference(call);
      call.backward = true;
      call.dy = dy;
      call.dx = r[3];
      call.dweight = r[4];
      call.dbias = r[5];
      by_device ? device.run(call) : run_reference(call);
    }
    for (int i = 0; i < 7; ++i)
      EXPECT_LE(distance(results[1][i], results[0][i]), near()) << int(c.op) << " result " << i;
  }
}

TEST_P(CpuLoopsTest, PoolingAgrees) {
  const Shape shape{2, 3, 9, 8};
  struct Case {
    Pool op;
    Shape out, kernel, stride, padding;
  };
  for (const Case& c : {Case{Pool::kMax, {2, 3, 5, 4}, {3, 3}, {2, 2}, {1, 1}},
                        Case{Pool::kAverage, {2, 3, 4, 4}, {2, 2}, {2, 2}, {0, 0}},
                        Case{Pool::kAdaptiveAverage, {2, 3, 4, 3}, {}, {}, {}}}) {
    const HostTensor x = random(shape, 1), dy = random(c.out, 2);
    HostTensor y = empty(c.out), expected_y = empty(c.out), dx = empty(shape),
               expected_dx = empty(shape);
    HostTensor indices(c.out, DType::kInt64), expected_indices(c.out, DType::kInt64);
    PoolCall call{c.op, false,      c.kernel,         c.stride, c.padding,  true,
                  x,    expected_y, expected_indices, dy,       expected_dx};
    run_reference(call);
    call.backward = true;
    run_reference(call);
    PoolCall again{c.op, false, c.kernel, c.stride, c.padding, true, x, y, indices, dy, dx};
    device.run(again);
    again.backward = true;
    device.run(again);
    EXPECT_LE(distance(y, expected_y), near());
    EXPECT_EQ(indices.values(), expected_indices.values());
    EXPECT_LE(distance(dx, expected_dx), near());
  }
}

TEST_P(CpuLoopsTest, UpsamplingAgrees) {
  const HostTensor x = random({2, 2, 5, 4}, 1), dy = random({2, 2, 10, 9}, 2);
  for (const Upsample op : {Upsample::kNearest, Upsample::kBilinear}) {
    HostTensor y = empty({2, 2, 10, 9}), expected_y = y, dx = empty({2, 2, 5, 4}), expected_dx = dx;
    run_reference(UpsampleCall{op, false, x, expected_y});
    device.run(UpsampleCall{op, false, x, y});
    EXPECT_LE(distance(y, expected_y), near());
    run_reference(UpsampleCall{op, true, dy, expected_dx});
    device.run(UpsampleCall{op, true, dy, dx});
    EXPECT_LE(distance(dx, expected_dx), near());
  }
}

TEST_P(CpuLoopsTest, OptimizersAgreeOverThreeSteps) {
  for (const Optimizer op : {Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdamW,
                             Optimizer::kRmsprop, Optimizer::kAdagrad}) {
    HostTensor p = random({1500}, 1), s1 = empty({1500}), s2 = empty({1500});
    HostTensor expected_p = p, expected_s1 = s1, expected_s2 = s2;
    for (int step = 1; step <= 3; ++step) {
      const HostTensor g = random({1500}, static_cast<std::uint64_t>(step) + 10);
      OptimizerCall call{op,  0.05, 0.9,        0.95, 1e-8,        0.01,
                         0.5, step, expected_p, g,    expected_s1, expected_s2};
      run_reference(call);
      call.parameter = p;
      call.state1 = s1;
      call.state2 = s2;
      device.run(call);
    }
    EXPECT_LE(distance(p, expected_p), near());
    EXPECT_LE(distance(s1, expected_s1), near());
    EXPECT_LE(distance(s2, expected_s2), near());
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, CpuLoopsTest,
                         ::testing::Values(Form{"Fp32", DType::kFp32, Layout::kContiguous},
                                           Form{"Fp32Reversed", DType::kFp32, Layout::kReversed},
                                           Form{"Fp32Gapped", DType::kFp32, Layout::kGapped},
                                           Form{"Fp16", DType::kFp16, Layout::kContiguous},
                                           Form{"Bf16", DType::kBf16, Layout::kContiguous},
                                           Form{"Bf16Reversed", DType::kBf16, Layout::kReversed},
                                           Form{"Fp64", DType::kFp64, Layout::kContiguous}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace memfathom
