#include "kernels/workspaces/convolution_text.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/workspaces/fit/design.h"

namespace memfathom {
namespace {

TEST(ConvolutionTextTest, ReadsEveryQueryBackFromItsText) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    for (const bool channels_last : {false, true}) {
      ConvolutionQuery query = draw_convolution(
          random, {static_cast<ConvolutionKind>(i % 3), DType::kFp16, channels_last});
      query.benchmark = i % 2 == 0;
      query.transposed = i % 5 == 0;
      if (i % 7 == 0) query.output_padding = query.padding;
      EXPECT_EQ(parse_convolution_query(to_string(query)), query) << to_string(query);
    }
  }
}

TEST(ConvolutionTextTest, RefusesAnyOtherText) {
  const std::string good = "conv forward fp16 nhwc x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1";
  EXPECT_NO_THROW(parse_convolution_query(good));
  for (const std::string& text :
       {std::string(), std::string("conv"), good + " ", good + " x", " " + good,
        std::string("conv sideways fp16 nhwc x[1]"),
        std::string("conv forward fp17 nhwc x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhcw x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhwc x[1,3,8,8 w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhwc x[1,2,3,4,5,6,7,8,9] w[4] s[1] p[1] d[1] g1"),
        std::string("conv forward fp16 nhwc x[1,99999999999999999999] w[4] s[1] p[1] d[1] g1"),
        std::string("conv forward fp16 nhwc x[01] w[4] s[1] p[1] d[1] g1")}) {
    EXPECT_THROW(parse_convolution_query(text), Error) << text;
  }
}

}  // namespace
}  // namespace memfathom
