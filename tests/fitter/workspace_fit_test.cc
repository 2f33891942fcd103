#include "fitter/workspace_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace memfathom {
namespace {

using ::testing::HasSubstr;

constexpr double kMiB = 1 << 20;

// Requests of an operation whose workspace is given by `bytes`.
template <typename Function>
std::vector<WorkspaceRow> requests(int count, Function bytes) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> size(std::log(kMiB), std::log(512 * kMiB));
  std::vector<WorkspaceRow> rows;
  for (int i = 0; i < count; ++i) {
    WorkspaceFeatures features{};
    features[kTermConstant] = 1;
    for (int t = kTermInput; t < kWorkspaceTermCount; ++t) {
      features[static_cast<std::size_t>(t)] = std::exp(size(random));
    }
    rows.push_back({Library::kCudnn, "convolution forward", features,
                    Bytes{static_cast<std::int64_t>(bytes(features))}});
  }
  return rows;
}

double value(const WorkspaceFit& fit, const std::string& term) {
  for (const Coefficient& c : fit.coefficients) {
    if (c.name == "phi.cudnn.convolution_forward." + term) return c.value;
  }
  return 0;
}

TEST(WorkspaceFitTest, FindsTheSumOfInputAndOutput) {
  const WorkspaceFit fit = fit_workspaces(
      requests(80, [](const WorkspaceFeatures& f) { return f[kTermInput] + f[kTermOutput]; }),
      FitOptions{});
  EXPECT_EQ(fit.models.front().terms, "input + output");
  EXPECT_NEAR(value(fit, "input"), 1, 1e-3);
  EXPECT_NEAR(value(fit, "output"), 1, 1e-3);
  EXPECT_EQ(fit.models.front().within_10_percent, 1);
}

TEST(WorkspaceFitTest, PrefersTheConstantWhenNothingElseHelps) {
  const WorkspaceFit fit = fit_workspaces(
      requests(80, [](const WorkspaceFeatures&) { return 32 * kMiB; }), FitOptions{});
  EXPECT_EQ(fit.models.front().terms, "constant");
  EXPECT_NEAR(value(fit, "constant"), 32 * kMiB, 1);
}

TEST(WorkspaceFitTest, FitsOperationsWithoutWorkspaceToZero) {
  const WorkspaceFit fit =
      fit_workspaces(requests(40, [](const WorkspaceFeatures&) { return 0.0; }), FitOptions{});
  EXPECT_EQ(value(fit, "constant"), 0);
  EXPECT_EQ(fit.models.front().held_out_median_error, 0);
}

TEST(WorkspaceFitTest, IsRobustToAFifthOfOtherAlgorithms) {
  int i = 0;
  const WorkspaceFit fit = fit_workspaces(
      requests(100,
               [&](const WorkspaceFeatures& f) { return ++i % 5 == 0 ? 0.0 : f[kTermLowered]; }),
      FitOptions{});
  EXPECT_NEAR(value(fit, "lowered"), 1, 0.05);
}

TEST(WorkspaceFitTest, RefusesTooFewNegativeAndNonsensicalRequests) {
  std::vector<WorkspaceRow> rows = requests(1, [](const WorkspaceFeatures&) { return kMiB; });
  EXPECT_THAT(fit_workspaces(rows, FitOptions{}).models.front().refusal, HasSubstr("too few"));
  rows = requests(30, [](const WorkspaceFeatures&) { return -1.0; });
  EXPECT_THAT(fit_workspaces(rows, FitOptions{}).models.front().refusal,
              HasSubstr("-1 bytes cannot be"));
  rows = requests(30, [](const WorkspaceFeatures&) { return kMiB; });
  rows[4].features[kTermInput] = std::nan("");
  const WorkspaceFit fit = fit_workspaces(rows, FitOptions{});
  EXPECT_THAT(fit.models.front().refusal, HasSubstr("nan"));
  EXPECT_TRUE(fit.coefficients.empty());
}

// What a quick plan records of a transform: two sizes, of two workloads.
TEST(WorkspaceFitTest, TwoToFourRequestsGiveAModelOfOneSize) {
  for (const int count : {2, 3, 4}) {
    const WorkspaceFit fit = fit_workspaces(
        requests(count, [](const WorkspaceFeatures& f) { return 1.4 * f[kTermLowered]; }),
        FitOptions{});
    EXPECT_EQ(fit.models.front().terms, "lowered") << count;
    EXPECT_NEAR(value(fit, "lowered"), 1.4, 1e-3) << count;
  }
}

TEST(WorkspaceFitTest, CollinearSizesGiveTheSimplerModel) {
  std::vector<WorkspaceRow> rows =
      requests(60, [](const WorkspaceFeatures& f) { return 2 * f[kTermInput]; });
  for (WorkspaceRow& row : rows) row.features[kTermOutput] = row.features[kTermInput];
  const WorkspaceFit fit = fit_workspaces(rows, FitOptions{});
  EXPECT_EQ(fit.models.front().terms, "input");
  EXPECT_NEAR(value(fit, "input"), 2, 1e-3);
}

}  // namespace
}  // namespace memfathom
