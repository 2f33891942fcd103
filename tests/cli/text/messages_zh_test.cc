#include "cli/language/messages_zh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "cli/language/language.h"
#include "cli/text/estimate_text.h"
#include "core/component.h"
#include "core/document.h"
#include "core/source.h"
#include "estimator/advise/changes.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

bool has_chinese(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0xE3; });
}

std::string in_chinese(std::string_view english) { return translated(Language::kChinese, english); }

std::size_t places(std::string_view message) {
  return static_cast<std::size_t>(std::count(message.begin(), message.end(), '{'));
}

TEST(ChineseMessagesTest, EachIsThereOnceAndHasTheValuesOfTheEnglishOne) {
  std::set<std::string_view> seen;
  for (const Message& message : chinese_messages()) {
    EXPECT_TRUE(seen.insert(message.english).second) << message.english;
    EXPECT_EQ(places(message.english), places(message.chinese)) << message.english;
  }
}

TEST(ChineseMessagesTest, EveryComponentHasAName) {
  for (const auto& [component, name] : kEnumNames<Component>)
    EXPECT_TRUE(has_chinese(in_chinese(name))) << name;
}

TEST(ChineseMessagesTest, EverySourceHasAName) {
  for (const auto& [source, name] : kEnumNames<Source>)
    EXPECT_TRUE(has_chinese(in_chinese(name))) << name;
}

TEST(ChineseMessagesTest, EveryVerdictHasAWord) {
  EXPECT_EQ(verdict_text(VerdictStatus::kFits, Language::kChinese), "✅ 安全");
  EXPECT_EQ(verdict_text(VerdictStatus::kDoesNotFit, Language::kChinese), "❌ 超限");
  for (const VerdictStatus status :
       {VerdictStatus::kTight, VerdictStatus::kUndecided, VerdictStatus::kUnknown})
    EXPECT_TRUE(has_chinese(verdict_text(status, Language::kChinese))) << to_string(status);
  EXPECT_EQ(verdict_text(VerdictStatus::kFits, Language::kEnglish), "fits");
}

TEST(ChineseMessagesTest, EveryKindOfSuggestionHasAName) {
  for (const auto& [kind, name] : kEnumNames<ChangeKind>) {
    const bool listed =
        std::any_of(chinese_messages().begin(), chinese_messages().end(),
                    [name = name](const Message& message) { return message.english == name; });
    EXPECT_TRUE(listed) << name;
  }
}

// Jobs that between them are offered every change.
TEST(ChineseMessagesTest, EverySuggestionAndItsCostIsTranslated) {
  for (const char* text :
       {"{model: {preset: gpt2}, training: {precision: fp32, evaluation: {batch_size: 32}}}",
        "{model: {preset: gpt2}, training: {precision: bf16, lora: {rank: 64}}}",
        "{model: {preset: gpt2}, training: {mode: inference, precision: fp32}}",
        "{model: {preset: gpt2}, training: {preference: dpo}}",
        "{model: {preset: gpt2}, training: {preference: dpo, lora: {rank: 8}}}",
        "{model: {preset: fno-2d}, training: {precision: fp32}}",
        "{model: {preset: gpt2}, parallel: {num_gpus: 4}}",
        "{model: {preset: gpt2}, parallel: {num_gpus: 4, fsdp: full}}",
        R"({model: {modules: [{name: a, model: {preset: gpt2}},
                              {name: b, model: {preset: gpt2}, train: frozen}]}})"}) {
    const Node document = parse_yaml(text, "job", 0);
    for (const SingleChange& change : possible_changes(document, read_job(document))) {
      for (const double factor : {1.0, 2.0}) {
        const std::string chinese = in_chinese(change.costs_at(factor));
        EXPECT_TRUE(has_chinese(chinese)) << change.costs;
        EXPECT_EQ(chinese.find("slower"), std::string::npos) << change.costs;
      }
      EXPECT_TRUE(has_chinese(in_chinese(change.change)) ||
                  change.change.find("rank") != std::string::npos)
          << change.change;
    }
  }
}

TEST(ComponentNameTest, TellsPyTorchsTensorsForCommunicationFromNccls) {
  const ComponentLine buckets{Component::kCommunication, "", Bytes{1}, Source::kExact, ""};
  const ComponentLine nccl{Component::kCommunication, "", Bytes{1}, Source::kDefault, ""};
  EXPECT_EQ(component_name(buckets), "communication (PyTorch)");
  EXPECT_EQ(component_name(nccl), "communication (NCCL)");
  EXPECT_EQ(component_name(nccl, Language::kChinese), "通信缓冲 (NCCL)");
}

TEST(TranslationTest, FindsASentenceByTheWordsAroundItsValues) {
  EXPECT_EQ(in_chinese("keeps the effective batch size of 16; more and smaller passes"),
            "有效 batch 16 不变；次数更多、每次更小");
  EXPECT_EQ(in_chinese("full training -> LoRA of rank 16 over 4-bit weights"),
            "全量训练 -> LoRA（rank 16，4 位权重）");
}

TEST(TranslationTest, FollowsThePluralsOfTheEnglish) {
  EXPECT_EQ(in_chinese("effective batch size 8: 4 per GPU x 1 accumulation step x 2 GPUs"),
            "有效 batch 8：每卡 4 x 累积 1 步 x 2 张卡");
  EXPECT_EQ(in_chinese("effective batch size 8: 4 per GPU x 2 accumulation steps x 1 GPU"),
            "有效 batch 8：每卡 4 x 累积 2 步 x 1 张卡");
}

TEST(TranslationTest, WhatHasNoTranslationStaysEnglish) {
  EXPECT_EQ(in_chinese("rope_theta is unusual"), "rope_theta is unusual");
  EXPECT_EQ(translated(Language::kChinese, "{} apples", {"3"}), "3 apples");
}

TEST(TranslationTest, PutsValuesWhereTheLanguageWantsThem) {
  EXPECT_EQ(translated(Language::kChinese, "; {} of {} is available: {}", {"9", "10", "{}"}),
            "，10 中可以使用 9：{}");
  EXPECT_EQ(translated(Language::kEnglish, "; {} of {} is available: {}", {"9", "10", "x"}),
            "; 9 of 10 is available: x");
}

class EnvironmentLanguageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) unsetenv(name);
  }
};

TEST_F(EnvironmentLanguageTest, IsThatOfTheFirstVariableThatIsSet) {
  EXPECT_EQ(language_of_environment(), Language::kEnglish);
  setenv("LANG", "zh_CN.UTF-8", 1);
  EXPECT_EQ(language_of_environment(), Language::kChinese);
  setenv("LC_MESSAGES", "en_US.UTF-8", 1);
  EXPECT_EQ(language_of_environment(), Language::kEnglish);
  setenv("LC_ALL", "zh_CN", 1);
  EXPECT_EQ(language_of_environment(), Language::kChinese);
}

TEST_F(EnvironmentLanguageTest, IsEnglishWhereTheTerminalIsNotUtf8) {
  setenv("LANG", "zh_CN.GB18030", 1);
  EXPECT_EQ(language_of_environment(), Language::kEnglish);
  setenv("LANG", "zh_CN.utf8", 1);
  EXPECT_EQ(language_of_environment(), Language::kChinese);
}

}  // namespace
}  // namespace memfathom
