#include "fitter/residual_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fitter/simple_rows.h"

namespace memfathom::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ResidualPlotTest, DrawsEveryRowOnce) {
  std::vector<FitRow> rows = simple_rows({.rows = 70});
  rows[5].measured = *rows[5].measured * 3;
  for (std::size_t i = 60; i < 70; ++i) rows[i].validation = true;
  const std::string svg = residual_plot(fit_rows(rows));
  EXPECT_THAT(svg, HasSubstr("<svg xmlns="));
  EXPECT_EQ(count(svg, "width=\"6\""), 10) << "validation rows are squares";
  EXPECT_GE(count(svg, "fill=\"none\""), 1) << "outliers are rings";
  EXPECT_EQ(count(svg, "r=\"2.5\"") + count(svg, "r=\"3.5\""), 60);
  EXPECT_THAT(svg, HasSubstr(">conv</text>"));
}

TEST(ResidualPlotTest, EscapesNamesFromOutside) {
  FitOptions options = simple_options();
  options.name = "<script>\"&";
  const std::string svg = residual_plot(fit_rows(simple_rows(), options));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&quot;&amp;"));
}

TEST(ResidualPlotTest, ARefusedFitGivesAnEmptyPlotAndNoCrash) {
  EXPECT_THAT(residual_plot(fit_rows({})), HasSubstr("(0 rows)"));
}

}  // namespace
}  // namespace memfathom::testing
