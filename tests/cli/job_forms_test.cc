// One job in all the forms it can be given in, and jobs that nobody should give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class JobFormsTest : public ::testing::Test {
 protected:
  std::string file(const char* name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"--db", (directory_ / "none.db").string(), "--format", "json", "estimate"});
    return run_binary(words);
  }
  json answer(const std::vector<std::string>& words) const {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    json result = json::parse(outcome.out);
    return {{"totals", result["totals"]},
            {"components", result["components"]},
            {"phases", result["phases"]},
            {"verdict", result["verdict"]},
            {"parameters", result["parameters"]}};
  }
  // Exit code 2 and one sentence that names what is wrong.
  void refuses(const std::vector<std::string>& words, const std::string& part) const {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_LT(outcome.err.size(), 600U) << outcome.err;
  }
  void refuses_job(const std::string& text, const std::string& part) const {
    refuses({file("hostile.json", text)}, part);
  }

  TemporaryDirectory directory_;
};

constexpr const char* kConfig =
    R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": false})";

TEST_F(JobFormsTest, OneKeyHasTheNamesThatScriptsGiveIt) {
  const std::string config = file("config.json", kConfig);
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--model", config, "--lora-rank", "4", "--dtype", "bf16"});
    return answer(flags);
  };
  const json expected = with({"--sequence-length", "64", "--quantization", "nf4"});
  EXPECT_EQ(with({"--seq-len", "64", "--load-in-4bit"}), expected);
  EXPECT_EQ(with({"--max_length", "64", "--load_in_4bit"}), expected);
  EXPECT_NE(with({"--seq-len", "64"}), expected);
}

TEST_F(JobFormsTest, TargetModulesAreOneWordWithCommasOrSeveralWords) {
  std::vector<std::string> words{"--model",           file("config.json", kConfig),
                                 "--sequence-length", "32",
                                 "--batch-size",      "2",
                                 "--lora-rank",       "4",
                                 "--target-modules"};
  std::vector<std::string> apart = words;
  words.emplace_back("q_proj,v_proj");
  apart.insert(apart.end(), {"q_proj", "v_proj"});
  EXPECT_EQ(answer(words), answer(apart));
}

TEST_F(JobFormsTest, YamlJsonFlagsAndAConfigFileGiveTheSameBytes) {
  const std::string config = file("config.json", kConfig);
  const json expected = answer(
      {file("job.yaml",
            "model:\n  config: config.json\ntraining:\n  batch_size: 2\n  sequence_length: 128\n"
            "  precision: bf16\n  optimizer: adamw\n  lora: {rank: 4, targets: [q_proj, v_proj]}\n"
            "target: {gpu: rtx-4090}\n")});
  EXPECT_EQ(answer({file(
                "job.json",
                std::string(R"({"model": {"config": )") + kConfig +
                    R"(}, "training": {"batch_size": 2, "sequence_length": 128, "precision": "bf16",
                             "optimizer": {"name": "adamw"}, "lora": {"rank": 4, "targets": ["q_proj", "v_proj"]}},
                             "target": {"gpu": "rtx-4090"}})")}),
            expected);
  EXPECT_EQ(answer({"--model", config, "--batch-size", "2", "--sequence-length", "128", "--dtype",
                    "bf16", "--optimizer", "adamw", "--lora-rank", "4", "--target-modules",
                    "q_proj", "v_proj", "--gpu", "rtx-4090"}),
            expected);
  EXPECT_EQ(answer({"--from", config, "--batch_size", "2", "--seq_length", "128", "--precision",
                    "bf16", "--optim", "adamw", "--lora_r", "4", "--set",
                    "training.lora.targets=[q_proj, v_proj]", "--gpu", "rtx-4090"}),
            expected);
}

TEST_F(JobFormsTest, ExplainShowsTheArithmeticOfEveryComponent) {
  const Outcome outcome = run({"--model", file("config.json", kConfig), "--batch-size", "1",
                               "--sequence-length", "64", "--explain"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  ASSERT_GE(result["explanation"].size(), result["components"].size());
  EXPECT_THAT(result["explanation"][0]["text"].get<std::string>(), HasSubstr(" parameters x 4 B"));
}

TEST_F(JobFormsTest, HostileSizesAreOneSentence) {
  refuses({"--total-params", "1000000000", "--batch-size", "1", "--sequence-length", "8"},
          "counts billions");
  refuses_job(R"({"model": {"parameters": 1e18}, "training": {"sequence_length": 8}})", "1e+18");
  refuses_job(
      R"({"model": {"preset": "gpt2"}, "training": {"batch_size": -1, "sequence_length": 8}})",
      "batch_size");
  refuses_job(
      R"({"model": {"preset": "gpt2"}, "training": {"batch_size": 1099511627776, "sequence_length": 1099511627776}})",
      "");
  refuses_job(
      R"({"model": {"input": {"shape": [1000000000000, 1000000000000]}, "layers": [{"type": "relu"}]}})",
      "");
  refuses_job(
      R"({"model": {"layers": [{"type": "repeat", "times": 1000000000000, "layers": [{"type": "relu"}]}], "input": {"shape": [4]}}})",
      "times");
  refuses(
      {file("nan.yaml", "model: {preset: gpt2}\ntraining: {sequence_length: 8, dropout: .nan}\n")},
      "dropout");
  refuses({file("inf.yaml",
                "model: {preset: gpt2}\ntraining: {sequence_length: 8, batch_size: .inf}\n")},
          "batch_size");
  refuses_job(
      R"({"model": {"preset": "llama-2-7b"}, "training": {"mode": "generate", "sequence_length": 8, "new_tokens": 1000000000000}})",
      "new_tokens");
}

TEST_F(JobFormsTest, BracketsWithoutEndAreOneSentence) {
  refuses({file("deep.json", std::string(std::size_t{1} << 20, '['))}, "deep");
  refuses({file("deep.yaml", std::string(std::size_t{1} << 20, '['))}, "deep.yaml");
  refuses({file("large.json", std::string((std::size_t{64} << 20) + 1, '['))}, "large.json");
}

}  // namespace
}  // namespace memfathom
