#include "estimator/readers/named_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/yaml_text.h"
#include "estimator/readers/merge.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NamedModelTest : public ::testing::Test {
 protected:
  void snapshot(const std::string& folder, const std::string& commit) const {
    fs::create_directories(cache_ / folder / "snapshots" / commit);
    std::ofstream(cache_ / folder / "snapshots" / commit / "config.json") << "{}";
  }

  TemporaryDirectory directory_;
  const fs::path cache_ = directory_ / "hub";
};

TEST_F(NamedModelTest, ASnapshotIsTheOneThatMainPointsTo) {
  snapshot("models--acme--tiny", "aaaa");
  snapshot("models--acme--tiny", "bbbb");
  EXPECT_FALSE(find_named_model("acme/tiny", cache_)) << "which of the two is not said";
  fs::create_directories(cache_ / "models--acme--tiny" / "refs");
  std::ofstream(cache_ / "models--acme--tiny" / "refs" / "main") << "bbbb\n";
  const std::optional<NamedModel> found = find_named_model("acme/tiny", cache_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->form, "config");
  EXPECT_THAT(found->value, EndsWith("models--acme--tiny/snapshots/bbbb"));
  EXPECT_THAT(found->assumption, HasSubstr("bbbb"));
}

TEST_F(NamedModelTest, ASnapshotIsPreferredToAPresetOfTheSameShape) {
  snapshot("models--meta-llama--Llama-2-7b-hf", "cccc");
  EXPECT_EQ(find_named_model("meta-llama/Llama-2-7b-hf", cache_)->form, "config");
}

TEST_F(NamedModelTest, OwnersAndEndingsAreCutOffAndThatIsSaid) {
  const std::optional<NamedModel> found = find_named_model("meta-llama/Llama-2-7b-chat-hf", cache_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->form, "preset");
  EXPECT_EQ(found->value, "Llama-2-7b");
  EXPECT_THAT(found->assumption, HasSubstr("shape of the preset"));
}

TEST_F(NamedModelTest, OfAnUnknownModelTheSizeInItsNameIsTakenAndThatIsSaid) {
  const auto parameters = [&](const char* name) {
    const std::optional<NamedModel> found = find_named_model(name, cache_);
    return found && found->form == "parameters" ? node_of(*found).as_number() : 0;
  };
  EXPECT_EQ(parameters("Qwen/Qwen3.5-9B"), 9e9);
  EXPECT_EQ(parameters("acme/Big-35B-A3B"), 35e9);
  EXPECT_EQ(parameters("acme/small_350m-it"), 350e6);
  EXPECT_EQ(parameters("acme/v1.5-preview"), 0) << "a version is no size";
  EXPECT_EQ(parameters("lama-2-9b"), 0) << "without an owner it may be a misspelt preset";
  EXPECT_THAT(find_named_model("Qwen/Qwen3.5-9B", cache_)->assumption,
              HasSubstr("with its config.json"));
}

TEST_F(NamedModelTest, ASizeInTheNameIsNeverReplacedByThatOfAPreset) {
  const auto parameters = [&](const char* name) {
    const std::optional<NamedModel> found = find_named_model(name, cache_);
    return found && found->form == "parameters" ? node_of(*found).as_number() : 0;
  };
  EXPECT_EQ(parameters("Qwen/Qwen2-57B-A14B"), 57e9);
  EXPECT_EQ(parameters("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"), 8e9);
  EXPECT_EQ(parameters("stabilityai/stablelm-2-1_6b"), 1.6e9);
  EXPECT_EQ(parameters("acme/Strange_3_8b"), 8e9);
  EXPECT_FALSE(find_named_model("Wan-AI/Wan2.9-T2V-14B", cache_)) << "a video model is no Llama";
  EXPECT_THAT(find_named_model("Qwen/Qwen2-57B-A14B", cache_)->assumption,
              HasSubstr("57 B parameters in its name"));
}

TEST_F(NamedModelTest, ModelScopesCacheWritesDotsAsUnderscores) {
  EXPECT_EQ(find_named_model("qwen/Qwen2___5-7B-Instruct", cache_)->value, "Qwen2.5-7B");
  EXPECT_EQ(node_of(*find_named_model("acme/odd-1___8B", cache_)).as_number(), 1.8e9);
}

TEST_F(NamedModelTest, TheSizeOfWhatATokenPassesIsNoModelsSize) {
  const std::optional<NamedModel> scout =
      find_named_model("meta-llama/Llama-4-Scout-17B-16E-Instruct", cache_);
  ASSERT_TRUE(scout);
  EXPECT_EQ(node_of(*scout).as_number(), 109e9);
  EXPECT_THAT(scout->assumption, HasSubstr("the 109 B parameters that its card says"));
  EXPECT_FALSE(find_named_model("acme/odd-17B-128E", cache_));
  EXPECT_TRUE(find_named_model("acme/odd-E4-3B", cache_));
  EXPECT_TRUE(find_named_model("tencent/Hunyuan-0.5B-Instruct", cache_)) << "a language model";
  EXPECT_FALSE(find_named_model("tencent/HunyuanVideo-13B", cache_));
  EXPECT_FALSE(find_named_model("acme/dbrxish", cache_));
  EXPECT_EQ(node_of(*find_named_model("x/dbrx-base-converted-v2", cache_)).as_number(), 132e9);
}

TEST_F(NamedModelTest, AdaptersOfAModelOfWhichOnlyTheSizeIsKnownGoToEveryLayer) {
  Node job = parse_yaml(
      "{model: {preset: acme/new-9b}, training: {lora: {rank: 8, targets: [query_key_value]}}}",
      "job.yaml");
  std::vector<std::string> assumptions;
  complete_model_names(job, cache_, assumptions);
  EXPECT_EQ(job.at("training").at("lora").at("targets").as_string(), "all-linear");
  EXPECT_THAT(assumptions, Contains(HasSubstr("every linear layer")));
}

TEST_F(NamedModelTest, TheNamesThatPeopleWriteMostAreKnown) {
  for (const char* name :
       {"meta-llama/Meta-Llama-3-8B-Instruct", "NousResearch/Meta-Llama-3.1-8B",
        "meta-llama/Llama-3.3-70B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3",
        "mistralai/Mistral-Nemo-Base-2407", "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-8B",
        "google/gemma-2-9b-it", "microsoft/Phi-3-mini-4k-instruct", "microsoft/phi-4",
        "HuggingFaceTB/SmolLM2-1.7B-Instruct", "facebook/opt-1.3b", "FacebookAI/roberta-large",
        "distilbert/distilbert-base-uncased", "google-bert/bert-base-uncased",
        "openai-community/gpt2", "google-t5/t5-small", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"}) {
    const std::optional<NamedModel> found = find_named_model(name, cache_);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->form, "preset") << name;
  }
}

TEST_F(NamedModelTest, AMixtureOfExpertsIsFoundInTheNameOfAMerge) {
  for (const char* name : {"cognitivecomputations/dolphin-2.5-mixtral-8x7b",
                           "NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO"}) {
    const std::optional<NamedModel> found = find_named_model(name, cache_);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->form, "preset") << name;
    EXPECT_THAT(found->assumption, HasSubstr("shape of the preset")) << name;
  }
  EXPECT_FALSE(find_named_model("acme/frankenmerge-9x9b", cache_));
}

TEST_F(NamedModelTest, AKnownNameNeedsNoAssumption) {
  EXPECT_THAT(find_named_model("resnet50", cache_)->assumption, IsEmpty());
}

TEST_F(NamedModelTest, ANameCannotLeaveTheCache) {
  fs::create_directories(directory_ / "snapshots");
  for (const char* name : {"../x", "a/../../b", "/etc", "a/b/c", "a b", ""})
    EXPECT_FALSE(find_named_model(name, cache_ / "hub") &&
                 !find_named_model(name, cache_ / "hub")->assumption.empty())
        << name;
}

TEST_F(NamedModelTest, NamesInModulesAreReplacedToo) {
  Node document = parse_yaml(
      "model: {modules: [{name: a, model: {preset: Qwen/Qwen2-7B-Instruct}}, "
      "{name: b, model: {preset: gpt2}}]}",
      "job.yaml");
  std::vector<std::string> assumptions;
  complete_model_names(document, cache_, assumptions);
  const std::vector<Node>& modules = document.at("model").at("modules").items();
  EXPECT_EQ(modules[0].at("model").at("preset").as_string(), "Qwen2-7B");
  EXPECT_EQ(modules[1].at("model").at("preset").as_string(), "gpt2");
  EXPECT_EQ(assumptions.size(), 1U);
}

TEST_F(NamedModelTest, AnAdapterNamesTheModelWhenNoOtherFileDoes) {
  const Node adapter = parse_json(
      R"({"peft_type":"LORA","r":8,"base_model_name_or_path":"mistralai/Mistral-7B-v0.1"})",
      "adapter_config.json");
  const MergedJob alone = merge_files({read_tree(adapter, FileFormat::kAdapter)});
  EXPECT_EQ(alone.document.at("model").at("preset").as_string(), "Mistral-7B");
  const Node job = parse_yaml("model: {preset: gpt2}", "job.yaml");
  const MergedJob both =
      merge_files({read_tree(job, FileFormat::kJob), read_tree(adapter, FileFormat::kAdapter)});
  EXPECT_EQ(both.document.at("model").at("preset").as_string(), "gpt2");
}

}  // namespace
}  // namespace memfathom
