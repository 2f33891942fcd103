#include "profiler/regression/rank_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memfathom {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// References: scipy.stats.mannwhitneyu, two-sided.
TEST(RankTestTest, IsExactForSmallSamplesWithoutTies) {
  const std::vector<double> low{1, 2, 3, 4, 5};
  const std::vector<double> high{6, 7, 8, 9, 10};
  EXPECT_NEAR(mann_whitney(low, high).p, 0.007936507936507936, 1e-12);
  EXPECT_NEAR(mann_whitney(std::vector<double>{1, 4, 6}, std::vector<double>{2, 3, 5, 7}).p,
              0.8571428571428571, 1e-12);
  EXPECT_NEAR(mann_whitney(std::vector<double>{1.1, 2.3, 3.2, 4.8, 5.1, 6.6},
                           std::vector<double>{2.9, 3.9, 7.2, 8.8, 9.4})
                  .p,
              0.17748917748917747, 1e-12);
}

TEST(RankTestTest, CorrectsTheApproximationForTies) {
  EXPECT_NEAR(mann_whitney(std::vector<double>{1, 2, 2, 3, 5, 8, 8},
                           std::vector<double>{2, 3, 6, 7, 9, 9, 10})
                  .p,
              0.13864617169781115, 1e-9);
  const std::vector<double> equal(8, 3.0);
  EXPECT_EQ(mann_whitney(equal, equal).p, 1);
}

TEST(RankTestTest, EffectHasTheSignOfTheDifference) {
  const std::vector<double> low{1, 2, 3};
  const std::vector<double> high{4, 5, 6};
  EXPECT_EQ(mann_whitney(low, high).effect, 1);
  EXPECT_EQ(mann_whitney(high, low).effect, -1);
  EXPECT_EQ(mann_whitney(low, low).effect, 0);
}

TEST(RankTestTest, ThreeAgainstThreeCanNeverBeSignificant) {
  EXPECT_NEAR(mann_whitney(std::vector<double>{1, 2, 3}, std::vector<double>{4, 5, 6}).p, 0.1,
              1e-12);
}

TEST(RankTestTest, HolmCorrectionIsMonotonic) {
  EXPECT_THAT(
      holm(std::vector<double>{0.01, 0.04, 0.03}),
      ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12)));
  EXPECT_THAT(holm(std::vector<double>{0.9, 0.8}), ElementsAre(1, 1));
}

}  // namespace
}  // namespace memfathom
