#include "fitter/outside_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;

// Truth: 20 + 2 T bare, 50 + 2.2 T after computing, a tenth more on sm_90; 900 more when eager.
std::vector<OutsidePoint> simulated_points() {
  struct SimulatedGpu {
    const char* architecture;
    int multiprocessors;
    double kilothreads;
  };
  std::vector<OutsidePoint> points;
  int number = 0;
  for (const SimulatedGpu& gpu : {SimulatedGpu{"sm_75", 40, 40}, SimulatedGpu{"sm_86", 82, 123},
                                  SimulatedGpu{"sm_80", 108, 216}, SimulatedGpu{"sm_89", 128, 192},
                                  SimulatedGpu{"sm_86", 84, 126}, SimulatedGpu{"sm_90", 132, 264},
                                  SimulatedGpu{"sm_90", 114, 228}}) {
    const double hopper = std::string_view(gpu.architecture) == "sm_90" ? 1.1 : 1;
    for (int i = 0; i < 6; ++i) {
      OutsidePoint point;
      point.target = {gpu.architecture, gpu.multiprocessors, gpu.kilothreads,
                      i % 2 == 0 ? "2.4" : "2.10", ModuleLoading::kLazy};
      const double wobble = ++number % 5 - 2;  // a few MiB either way
      point.stage = i < 2 ? OutsideStage::kBare : OutsideStage::kComputed;
      point.bytes =
          (i < 2 ? 20 + 2 * gpu.kilothreads : 50 + 2.2 * gpu.kilothreads) * hopper * kMiB +
          wobble * kMiB;
      if (number % 13 == 0) point.bytes += 1500 * kMiB;  // another allocator in the process
      points.push_back(point);
    }
    OutsidePoint eager = points.back();
    eager.target.loading = ModuleLoading::kEager;
    eager.bytes = (920 + 2 * gpu.kilothreads) * kMiB;
    points.push_back(eager);
    OutsidePoint communicated = points[points.size() - 2];
    communicated.stage = OutsideStage::kCommunicated;
    communicated.bytes = (130 + 2.2 * gpu.kilothreads) * hopper * kMiB;
    points.push_back(communicated);
  }
  return points;
}

TEST(OutsideFitTest, PredictsGpusThatItHasNotSeen) {
  const OutsideFit fit = fit_outside(simulated_points());
  EXPECT_TRUE(fit.calibration.usable);
  EXPECT_EQ(fit.gpus.size(), 7U);
  EXPECT_LT(fit.median_error, 0.05);
  const OutsideTarget a100{"sm_80", 108, 216, "2.10", ModuleLoading::kLazy};
  EXPECT_NEAR(bytes_outside(fit.calibration, a100), 525 * kMiB, 25 * kMiB);
  const OutsideTarget eager{"sm_80", 108, 216, "", ModuleLoading::kEager};
  EXPECT_NEAR(bytes_outside(fit.calibration, eager), 1352 * kMiB, 60 * kMiB);
}

TEST(OutsideFitTest, KeepsTheHeavyUpperTailInTheResiduals) {
  const OutsideFit fit = fit_outside(simulated_points());
  const auto lazy =
      std::find_if(fit.calibration.ratios.begin(), fit.calibration.ratios.end(),
                   [](const RatioGroup& group) { return group.group == kLazyResiduals; });
  ASSERT_NE(lazy, fit.calibration.ratios.end());
  EXPECT_GT(lazy->ratios.back(), 2.0);   // 1.5 GiB above, in units of about 1 GiB
  EXPECT_GT(lazy->ratios.front(), 0.8);  // and nothing like it below
}

TEST(OutsideFitTest, RefusesTooFewPoints) {
  std::vector<OutsidePoint> few = simulated_points();
  few.resize(5);
  EXPECT_THROW(fit_outside(few), Error);
}

}  // namespace
}  // namespace memfathom
