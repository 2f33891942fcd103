#include "estimator/readers/language_part.h"

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
  take_language_part(result.document, result.notes);
  return result;
}

TEST(LanguagePartTest, OfLlavaIsLlamaWithTheLibrarysDefaults) {
  const Taken llava = taken(
      "{model_type: llava, vision_config: {model_type: clip_vision_model}, "
      "text_config: {model_type: llama, vocab_size: 32064}}");
  EXPECT_THAT(llava.notes.not_modelled, Contains(HasSubstr("llava")));
  Node document = llava.document;
  document.assign("training.mode", Node::string("inference"));
  EXPECT_EQ(run_dry(read_job(document), {}).parameter_count, 6738939904);
}

// As google/gemma-3-4b-it is published.
TEST(LanguagePartTest, OfGemma3LeavesOutWhatIsTheLibrarysDefault) {
  const Taken gemma = taken(
      "{model_type: gemma3, vision_config: {model_type: siglip_vision_model}, "
      "text_config: {model_type: gemma3_text, hidden_size: 2560, intermediate_size: 10240, "
      "num_hidden_layers: 34, rope_scaling: {factor: 8.0, rope_type: linear}, "
      "sliding_window: 1024}}");
  Node document = gemma.document;
  document.assign("training.mode", Node::string("inference"));
  EXPECT_EQ(run_dry(read_job(document), {}).parameter_count, 3880263168);
}

TEST(LanguagePartTest, OfQwen2VlStandsAtTheTop) {
  const Taken qwen = taken(
      "{model_type: qwen2_vl, vision_config: {depth: 32}, hidden_size: 64, "
      "num_hidden_layers: 1, num_attention_heads: 4, intermediate_size: 96, "
      "vocab_size: 100}");
  EXPECT_EQ(qwen.document.at("model").at("config").at("model_type").as_string(), "qwen2");
  EXPECT_THAT(qwen.notes.not_modelled, Contains(HasSubstr("images count as tokens")));
}

TEST(LanguagePartTest, WhatIsNotKnownInsideEitherStaysAsItIs) {
  const Taken unknown = taken("{model_type: newvl, text_config: {model_type: newtext}}");
  EXPECT_EQ(unknown.document.at("model").at("config").at("model_type").as_string(), "newvl");
  EXPECT_THAT(unknown.notes.not_modelled, IsEmpty());
  EXPECT_THAT(taken("{model_type: clip, text_config: {}}").notes.not_modelled, IsEmpty());
}

TEST(LanguagePartTest, AClassifiersHeadIsSaidToBeCountedAsALanguageModels) {
  EXPECT_THAT(taken("{model_type: llama, architectures: [LlamaForSequenceClassification]}")
                  .notes.not_modelled,
              Contains(HasSubstr("LlamaForSequenceClassification")));
  EXPECT_THAT(taken("{model_type: llama, architectures: [LlamaForCausalLM]}").notes.not_modelled,
              IsEmpty());
  EXPECT_THAT(taken("{model_type: bert, architectures: [BertForSequenceClassification]}")
                  .notes.not_modelled,
              IsEmpty());
}

}  // namespace
}  // namespace memfathom
