#include "fitter/options.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(FitOptionsTest, TheDefaultsAreValid) {
  std::string why;
  EXPECT_TRUE(FitOptions{}.is_valid(&why)) << why;
  EXPECT_TRUE(FitOptions{}.is_valid(nullptr));
}

TEST(FitOptionsTest, NamesTheInvalidField) {
  const auto reason = [](auto change) {
    FitOptions options;
    change(options);
    std::string why;
    EXPECT_FALSE(options.is_valid(&why));
    return why;
  };
  EXPECT_EQ(reason([](FitOptions& o) { o.folds = 1; }), "folds is 1; it must be at least 2");
  EXPECT_EQ(reason([](FitOptions& o) { o.min_samples = 0; }),
            "min_samples is 0; it must be at least 2");
  EXPECT_EQ(reason([](FitOptions& o) { o.interval_level = 1.5; }),
            "interval_level is 1.5; it must lie between 0 and 1");
  EXPECT_FALSE(reason([](FitOptions& o) { o.quantum = Bytes{0}; }).empty());
  EXPECT_FALSE(reason([](FitOptions& o) { o.sibling_spread = 0; }).empty());
}

}  // namespace
}  // namespace memfathom
