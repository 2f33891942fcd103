#include "estimator/readers/language_model_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Taken {
  Node document;
  MergedJob notes;
};

Taken taken(const char* config) {
  Taken result;
  result.document = parse_yaml(
      (std::string("model: {config: ") + config + "}\ntraining: {sequence_length: 8}\n").c_str(),
      "job.yaml");
  replace_by_language_model(result.document, result.notes);
  return result;
}

TEST(LanguagePartTest, OfATowerThatIsNotKnownIsLlamaWithTheLibrarysDefaults) {
  const Taken llava = taken(
      "{model_type: llava_next, vision_config: {model_type: clip_vision_model}, "
      "text_config: {model_type: llama, vocab_size: 32064}}");
  EXPECT_THAT(llava.notes.not_modelled, Contains(HasSubstr("llava_next")));
  Node document = llava.document;
  document.assign("training.mode", Node::string("inference"));
  EXPECT_EQ(run_dry(read_job(document), {}).parameter_count, 6738939904);
}

// As google/gemma-3-4b-it is published: what is the library's default is left out.
constexpr const char* kGemma3 =
    "{model_type: gemma3, vision_config: {model_type: siglip_vision_model, hidden_size: 1152, "
    "intermediate_size: 4304, num_attention_heads: 16, num_hidden_layers: 27, image_size: 896, "
    "patch_size: 14, vision_use_head: false}, "
    "text_config: {model_type: gemma3_text, hidden_size: 2560, intermediate_size: 10240, "
    "num_hidden_layers: 34, rope_scaling: {factor: 8.0, rope_type: linear}, "
    "sliding_window: 1024}}";

TEST(LanguagePartTest, AModelWhoseTowerIsKnownStaysWhole) {
  const Taken gemma = taken(kGemma3);
  EXPECT_THAT(gemma.notes.not_modelled, IsEmpty());
  Node document = gemma.document;
  document.assign("training.mode", Node::string("inference"));
  EXPECT_EQ(run_dry(read_job(document), {}).parameter_count, 4300079472);
}

TEST(LanguagePartTest, IsWhatIsSplitAmongRanks) {
  Taken gemma;
  gemma.document = parse_yaml((std::string("model: {config: ") + kGemma3 +
                               "}\ntraining: {sequence_length: 8, mode: inference}\n"
                               "parallel: {pipeline: 2}\n")
                                  .c_str(),
                              "job.yaml");
  replace_by_language_model(gemma.document, gemma.notes);
  EXPECT_EQ(gemma.document.at("model").at("config").at("model_type").as_string(), "gemma3_text");
  EXPECT_THAT(gemma.notes.not_modelled, Contains(HasSubstr("their encoder is not counted")));
}

TEST(LanguagePartTest, OfQwen2VlStandsAtTheTop) {
  const Taken qwen = taken(
      "{model_type: qwen2_vl, vision_config: {depth: 1, embed_dim: 64, num_heads: 4, hidden_size: "
      "64}, hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 4, intermediate_size: 96, "
      "vocab_size: 100}");
  EXPECT_THAT(qwen.notes.not_modelled, IsEmpty());
  Node document = qwen.document;
  document.assign("training.num_images", Node::integer(0));
  EXPECT_GT(run_dry(read_job(document), {}).parameter_count, 200000);
}

TEST(LanguagePartTest, WhatIsNotKnownInsideEitherStaysAsItIs) {
  const Taken unknown = taken("{model_type: newvl, text_config: {model_type: newtext}}");
  EXPECT_EQ(unknown.document.at("model").at("config").at("model_type").as_string(), "newvl");
  EXPECT_THAT(unknown.notes.not_modelled, IsEmpty());
  EXPECT_THAT(taken("{model_type: clip, text_config: {}}").notes.not_modelled, IsEmpty());
}

TEST(LanguagePartTest, AHeadThatIsNotModelledIsNamed) {
  const auto not_modelled = [](const std::string& type, const std::string& architecture) {
    const std::string config = "{model_type: " + type + ", architectures: [" + architecture + "]}";
    return taken(config.c_str()).notes.not_modelled;
  };
  EXPECT_THAT(not_modelled("llama", "LlamaRewardModelWithMargin"),
              Contains(HasSubstr("LlamaRewardModelWithMargin")));
  EXPECT_THAT(not_modelled("bert", "BertForMultipleChoice"),
              Contains(HasSubstr("BertForMultipleChoice")));
  EXPECT_THAT(not_modelled("bart", "BartForSequenceClassification"),
              Contains(HasSubstr("BartForSequenceClassification")));
  for (const char* head : {"ForCausalLM", "ForSequenceClassification", "ForTokenClassification",
                           "ForQuestionAnswering", "Model"})
    EXPECT_THAT(not_modelled("llama", std::string("Llama") + head), IsEmpty()) << head;
}

TEST(LanguagePartTest, AHeadWhoseClassIsCalledAModelIsKnown) {
  const Taken marian =
      taken("{model_type: marian, architectures: [MarianMTModel], vocab_size: 1000}");
  EXPECT_THAT(marian.notes.assumptions, IsEmpty());
  EXPECT_THAT(marian.notes.not_modelled, IsEmpty());
  const Taken two = taken("{model_type: gpt2, architectures: [GPT2DoubleHeadsModel]}");
  EXPECT_THAT(two.notes.not_modelled, Contains(HasSubstr("GPT2DoubleHeadsModel")));
}

TEST(LanguagePartTest, AnEncoderDecoderWithoutAHeadIsCountedWithItsOwnAndSaysSo) {
  const Taken bart = taken("{model_type: bart, architectures: [BartModel]}");
  EXPECT_THAT(bart.notes.not_modelled, IsEmpty());
  EXPECT_THAT(bart.notes.assumptions, Contains(HasSubstr("BartModel has no head")));
}

}  // namespace
}  // namespace memfathom
