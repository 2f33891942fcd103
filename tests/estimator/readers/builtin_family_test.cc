#include "estimator/readers/builtin_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/advise/rule_of_thumb.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/merge.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OwnFamilyTest, AWidthAndADepthAreTakenForAFourierOperatorAndSaid) {
  Node document = parse_yaml(
      "model: {config: {hidden_size: 256, num_hidden_layers: 10}}\ntraining: {image_size: 128}",
      "job.yaml");
  std::vector<std::string> assumptions;
  complete_builtin_family(document, assumptions);
  EXPECT_TRUE(document.at("model").same_value(
      parse_yaml("config: {model_type: fno, width: 256, layers: 10, modes: 12}", "x.yaml")));
  ASSERT_EQ(assumptions.size(), 2U);
  EXPECT_THAT(assumptions[0], HasSubstr("Fourier"));
}

TEST(OwnFamilyTest, SmallImagesHaveFewerModes) {
  Node document = parse_yaml("model: {preset: fno}\ntraining: {image_size: [8, 64]}", "job.yaml");
  std::vector<std::string> assumptions;
  complete_builtin_family(document, assumptions);
  EXPECT_EQ(document.at("model").at("config").at("modes").as_int(), 4);
}

TEST(OwnFamilyTest, OtherModelsAreLeftAlone) {
  for (const char* text :
       {"model: {preset: gpt2}", "model: {config: {model_type: llama, hidden_size: 8}}",
        "model: {config: some/folder}", "{}"}) {
    Node document = parse_yaml(text, "job.yaml");
    std::vector<std::string> assumptions;
    complete_builtin_family(document, assumptions);
    EXPECT_TRUE(document.same_value(parse_yaml(text, "job.yaml"))) << text;
    EXPECT_THAT(assumptions, IsEmpty());
  }
}

TEST(RuleOfThumbTest, FollowsTheOldFormula) {
  const Node document = parse_yaml(
      "model: {config: {model_type: fno, width: 256, layers: 10, modes: 12}}\ntraining: "
      "{batch_size: 8, image_size: 128}",
      "job.yaml");
  Estimate estimate;
  estimate.verdict.capacity = Bytes{std::int64_t{24} << 30};
  const auto rule = rule_of_thumb(document, read_job(document), estimate);
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->per_layer.count(), 134217728);  // 128 MiB, where the old page printed 1.0737 GB
  EXPECT_EQ(rule->activations.count(), 1342177280);
  EXPECT_TRUE(rule->safe);
  const Node gpt2 = parse_yaml("model: {preset: gpt2}", "job.yaml");
  EXPECT_FALSE(rule_of_thumb(gpt2, read_job(gpt2), estimate));
}

TEST(OwnFamilyTest, AWidthADepthAndASequenceLengthAreATransformer) {
  Node document = parse_yaml(
      "{model: {config: {hidden_size: 1024, num_hidden_layers: 24}}, training: {sequence_length: "
      "512}}",
      "x.yaml");
  std::vector<std::string> assumptions;
  complete_builtin_family(document, assumptions);
  EXPECT_EQ(value_at(document, "model.config.model_type")->as_string(), "gpt2");
  EXPECT_EQ(value_at(document, "model.config.n_head")->as_int(), 16);
  ASSERT_EQ(assumptions.size(), 1U);
}

}  // namespace
}  // namespace memfathom
