#include "profiler/regression/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace memfathom {
namespace {

using ::testing::HasSubstr;

TEST(SuiteTest, NamesAreUnique) {
  std::set<std::string> names;
  std::size_t count = 0;
  for (const ConvolutionCase& c : convolution_suite()) names.insert(c.name), ++count;
  for (const AttentionCase& c : attention_suite()) names.insert(c.name), ++count;
  for (const JobCase& c : job_suite(SuiteScale::kFull)) names.insert(c.name), ++count;
  EXPECT_EQ(names.size(), count);
}

TEST(SuiteTest, HasTheDataGradientThatGrewInCudnn922) {
  const std::vector<ConvolutionCase> suite = convolution_suite();
  const auto found = std::find_if(suite.begin(), suite.end(), [](const ConvolutionCase& c) {
    return c.label == "data gradient 7x7/s2 3→64 @224² b32 fp16 NHWC";
  });
  ASSERT_NE(found, suite.end());
  EXPECT_EQ(found->name, "conv/7x7s2-3-64-224-b32/data_gradient/fp16/nhwc");
  EXPECT_EQ(to_string(found->query),
            "conv data_gradient fp16 nhwc x[32,3,224,224] w[64,3,7,7] s[2,2] p[3,3] d[1,1] g1");
}

TEST(SuiteTest, HasVolumesInBf16) {
  const std::vector<ConvolutionCase> suite = convolution_suite();
  EXPECT_TRUE(std::any_of(suite.begin(), suite.end(), [](const ConvolutionCase& c) {
    return c.query.dtype == DType::kBf16 && c.query.input.rank() == 5 && c.query.weight[2] == 3;
  }));
}

TEST(SuiteTest, TransformsAreInFp32AndTheFullScaleHasTwoShapesOfEveryLayer) {
  std::map<std::string, int> shapes;
  for (const JobCase& c : job_suite(SuiteScale::kFull)) {
    if (c.name.find("fno") != std::string::npos) {
      EXPECT_TRUE(c.name.ends_with("/fp32")) << c.name;
    }
    if (c.name.ends_with("/fp32")) ++shapes[c.name.substr(0, c.name.find("/b"))];
  }
  EXPECT_EQ(shapes.size(), 13U);
  for (const auto& [layer, count] : shapes) EXPECT_EQ(count, 2) << layer;
}

TEST(SuiteTest, CoversAttentionWithAndWithoutMaskForwardAndBackward) {
  std::set<std::pair<bool, bool>> kinds;  // backward, causal
  for (const AttentionCase& c : attention_suite())
    kinds.emplace(c.question.starts_with("attention backward "), c.question.ends_with(" causal"));
  EXPECT_EQ(kinds.size(), 4U);
}

TEST(SuiteTest, JobsAreJsonAndTheSmallScaleIsInFp32Only) {
  std::string small_names;
  for (const JobCase& c : job_suite(SuiteScale::kSmall)) {
    EXPECT_TRUE(nlohmann::json::parse(c.job).contains("model")) << c.name;
    EXPECT_THAT(c.name, HasSubstr("/fp32"));
    small_names += c.name + ' ';
  }
  EXPECT_THAT(small_names, HasSubstr("large-vocabulary"));
  EXPECT_THAT(small_names, HasSubstr("fno3d"));
}

}  // namespace
}  // namespace memfathom
