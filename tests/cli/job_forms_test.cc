// One job in all input forms, and invalid jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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

TEST_F(JobFormsTest, TakesWhatNvidiaSmiPrintedAsWhatOthersUse) {
  const std::string smi = file("smi.csv",
                               "index, name, memory.total [MiB], memory.used [MiB]\n"
                               "0, NVIDIA A100-SXM4-80GB, 81920 MiB, 1024 MiB\n"
                               "1, NVIDIA A100-SXM4-80GB, 81920 MiB, 40960 MiB\n");
  const std::string config = file("config.json", kConfig);
  const auto available = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--from", config, "--sequence-length", "64", "--nvidia-smi", smi});
    return answer(more)["verdict"]["available_bytes"].get<std::int64_t>();
  };
  // The second GPU has the least left.
  EXPECT_EQ(available({"--device-id", "0"}) - available({}), std::int64_t{40960 - 1024} << 20);
  EXPECT_EQ(available({"--device-id", "1"}), available({}));
  refuses({"--from", config, "--sequence-length", "64", "--nvidia-smi", config}, "nvidia-smi");
}

TEST_F(JobFormsTest, TrainsAsManyParametersAsASizeSays) {
  const std::vector<std::string> whole{"--total_params", "1.0", "--sequence-length", "64"};
  std::vector<std::string> part = whole;
  part.insert(part.end(), {"--trainable_params", "0.25"});
  const auto all = answer(whole)["parameters"];
  const auto some = answer(part)["parameters"];
  EXPECT_EQ(some["total"], all["total"]);
  const double share = some["trainable"].get<double>() / all["total"].get<double>();
  EXPECT_GT(share, 0.15);
  EXPECT_LT(share, 0.35);
  refuses({"--total_params", "1.0", "--trainable_params", "2.0", "--sequence-length", "64"},
          "part of --total-params");
}

TEST_F(JobFormsTest, RefusesAModelAndASizeTogether) {
  refuses({"--model", "gpt2", "--total-params", "3"},
          "--model gpt2 and --total-params 3 each name a model");
}

TEST_F(JobFormsTest, RecommendSaysNotThatAJobFitsOfWhichKeysWereNotRead) {
  const std::string own = file("axolotl.yml",
                               "base_model: TinyLlama/TinyLlama-1.1B-Chat-v1.0\nsequence_len: 512\n"
                               "micro_batch_size: 1\ngradient_checkpoint: true\n");
  const std::string written = (directory_ / "fitting.yaml").string();
  const Outcome outcome =
      run_binary({"--db", (directory_ / "none.db").string(), "--format", "json", "recommend",
                  "--from", own, "--gpu", "rtx-4090", "--auto", written});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_TRUE(result["fits"].is_null());
  ASSERT_FALSE(result["suggestions"].empty());
  for (const json& suggestion : result["suggestions"]) EXPECT_TRUE(suggestion["fits"].is_null());
  EXPECT_THAT(outcome.err, HasSubstr("--auto wrote nothing"));
  EXPECT_FALSE(std::filesystem::exists(written));
}

TEST_F(JobFormsTest, AcceptsTheOptionNamesOfCommonScripts) {
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

TEST_F(JobFormsTest, SaysWhatReplacesTheFlagsOfTrainingCommands) {
  refuses({"--model", "gpt2", "--seq-len", "64", "--bf16"}, "give --dtype bf16 for weights");
  refuses({"--model", "gpt2", "--seq-len", "64", "--flash_attn"}, "give --attention flash");
}

TEST_F(JobFormsTest, AcceptsTargetModulesAsOneOrSeveralArguments) {
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

TEST_F(JobFormsTest, BatchLineGivesTheSameAnswerAsAJobFile) {
  file("config.json", kConfig);
  for (
      const char* job : {
          R"({"model": {"preset": "openai-community/gpt2"}, "training": {"sequence_length": 16}})",
          R"({"model": {"preset": "acme/Newest-1B"}, "training": {"sequence_length": 16}})",
          R"({"model": {"config": {"model_type": "fno", "hidden_size": 16, "num_hidden_layers": 2}}, "training": {"image_size": 32}})",
          R"({"model": {"config": {"model_type": "acme_vl", "vision_config": {}, "text_config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 100}}}, "training": {"sequence_length": 16}})",
          R"({"model": {"config": "config.json"}, "training": {"sequence_length": 16}})",
      }) {
    const Outcome alone = run({file("job.json", job)});
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    json expected = json::parse(alone.out);
    expected.erase("job");  // human-readable text
    const Outcome batch = run({"--batch", file("job.jsonl", std::string(job) + "\n")});
    ASSERT_EQ(batch.exit_code, 0) << batch.out;
    // Remarks may name the file.
    std::string text = batch.out;
    for (std::size_t at = text.find("job.jsonl"); at != std::string::npos;
         at = text.find("job.jsonl"))
      text.replace(at, 9, "job.json");
    EXPECT_EQ(json::parse(text), expected) << job;
  }
}

TEST_F(JobFormsTest, AppliesFlagsToEveryBatchLine) {
  const std::string lines = file(
      "jobs.jsonl",
      R"({"id": "a", "model": {"preset": "gpt2"}, "training": {"sequence_length": 16}, "target": {"gpu": "t4"}})"
      "\n"
      R"({"id": "b", "job": {"model": {"preset": "gpt2"}, "training": {"sequence_length": 32}}})"
      "\n");
  const std::vector<std::string> flags{"--gpu",       "rtx-4090", "--set", "training.batch_size=2",
                                       "--optimizer", "sgd"};
  std::vector<std::string> words{"--batch", lines};
  words.insert(words.end(), flags.begin(), flags.end());
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream answers(outcome.out);
  for (const char* length : {"16", "32"}) {
    std::string line;
    ASSERT_TRUE(std::getline(answers, line));
    const json answered = json::parse(line);
    EXPECT_EQ(answered["id"], length == std::string("16") ? "a" : "b");
    std::vector<std::string> alone{"--model", "gpt2", "--sequence-length", length};
    alone.insert(alone.end(), flags.begin(), flags.end());
    EXPECT_EQ(answered["totals"], answer(alone)["totals"]);
    EXPECT_EQ(answered["verdict"], answer(alone)["verdict"]);
  }
}

TEST_F(JobFormsTest, BatchSupportsStrictAndExplain) {
  const std::string lines =
      file("jobs.jsonl", R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 16}})"
                         "\n");
  EXPECT_EQ(run({"--batch", lines}).exit_code, 0);
  EXPECT_EQ(run({"--batch", lines, "--strict"}).exit_code, 3) << "nothing is calibrated";
  EXPECT_EQ(run({"--batch", lines, "--strict", "--gpu", "h100-80gb", "--calibration",
                 "a100-80gb/pytorch"})
                .exit_code,
            0);
  EXPECT_FALSE(json::parse(run({"--batch", lines}).out).contains("explanation"));
  EXPECT_TRUE(json::parse(run({"--batch", lines, "--explain"}).out).contains("explanation"));
}

TEST_F(JobFormsTest, RefusesUnsupportedBatchOptionsInOneSentence) {
  const std::string lines = file("jobs.jsonl", "{}\n");
  refuses({"--batch", lines, "--format", "csv"}, "JSON lines");
  refuses({"--batch", lines, "--format", "markdown"}, "JSON lines");
  refuses({"--batch", lines, "--recommend"}, "one job at a time");
  refuses({"--batch", lines, "--rule-of-thumb"}, "one job at a time");
  refuses({"job.yaml", "--batch", lines}, "job.yaml is not allowed");
  refuses({"--batch", lines, "--set", "oops"}, "--set oops");
}

TEST_F(JobFormsTest, ExplainShowsTheArithmeticOfEveryComponent) {
  const Outcome outcome = run({"--model", file("config.json", kConfig), "--batch-size", "1",
                               "--sequence-length", "64", "--explain"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  ASSERT_GE(result["explanation"].size(), result["components"].size());
  EXPECT_THAT(result["explanation"][0]["text"].get<std::string>(), HasSubstr(" parameters x 4 B"));
}

TEST_F(JobFormsTest, RefusesExtremeSizesInOneSentence) {
  refuses({"--total-params", "1000000000", "--batch-size", "1", "--sequence-length", "8"},
          "unit is billions");
  refuses_job(R"({"model": {"parameters": 1e18}, "training": {"sequence_length": 8}})", "1e+18");
  refuses_job(
      R"({"model": {"preset": "gpt2"}, "training": {"batch_size": -1, "sequence_length": 8}})",
      "batch_size");
  refuses_job(
      R"({"model": {"preset": "gpt2"}, "training": {"batch_size": 1099511627776, "sequence_length": 1099511627776}})",
      "shape [1099511627776, 1099511627776] cannot be counted");
  refuses_job(
      R"({"model": {"input": {"shape": [1000000000000, 1000000000000]}, "layers": [{"type": "relu"}]}})",
      "shape [1, 1000000000000, 1000000000000] cannot be counted");
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

TEST_F(JobFormsTest, RefusesFlagsOfWhichOneWouldSilentlyWin) {
  const auto refuses_with = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), {"--model", "gpt2", "--sequence-length", "8"});
    refuses(words, part);
  };
  refuses_with({"--batch", "2", "--batch-size", "3"}, "give one of them");
  refuses_with({"--load-in-4bit", "--load-in-8bit"}, "give one of them");
  refuses_with({"--dtype", "bf16", "--mixed-precision", "fp16"}, "contradict");
  refuses_with({"--dtype", "bf16", "--use-fp16"}, "contradict");
  refuses_with({"--use-fp16", "--mixed-precision", "bf16"}, "contradict");
  refuses_with({"--num-layers", "2"}, "--model gpt2 and --num-layers");
  refuses_with({"--gpu", "t4", "--gpu", "l4"}, "--gpu is given 2 times; give it once");
  refuses_with({"--probability", "0.9"}, "belongs to --recommend");
}

TEST_F(JobFormsTest, RefusesEmptyValuesByTheNameOfTheirFlag) {
  const auto refuses_with = [&](const std::string& flag, const std::string& value,
                                const std::string& part) {
    refuses({"--model", "gpt2", "--sequence-length", "8", flag, value}, part);
  };
  refuses_with("--gpu", "", "target.gpu");
  refuses_with("--margin", "", "--margin is empty");
  refuses_with("--optimizer", " ", "--optimizer is empty");
  refuses_with("--set", "training.batch_size=", "--set training.batch_size= is empty");
  refuses_with("--gpu-memory", "", "--gpu-memory 24 (GiB)");
  refuses_with("--gpu-memory", "0", "--gpu-memory 24 (GiB)");
  refuses_with("--device-id", "-1", "--device-id is -1");
  refuses_with("--margin", "2", "such as 2GiB");
}

TEST_F(JobFormsTest, AutocastIsInAdditionToTheTypeOfTheWeights) {
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--model", "gpt2", "--sequence-length", "8"});
    return answer(words);
  };
  EXPECT_EQ(with({"--dtype", "bf16", "--mixed-precision", "bf16"}),
            with({"--set", "training.precision=bf16", "--set", "training.autocast=bf16"}));
  EXPECT_EQ(with({"--dtype", "fp32", "--mixed-precision", "bf16"}), with({"--dtype", "amp-bf16"}));
  EXPECT_EQ(with({"--dtype", "bf16", "--mixed-precision", "no"}), with({"--dtype", "bf16"}));
}

TEST_F(JobFormsTest, SaysHowManyNewTokensWereAssumed) {
  const std::vector<std::string> job{"--model", "gpt2",   "--sequence-length",
                                     "8",       "--mode", "generate"};
  const Outcome outcome = run(job);
  EXPECT_THAT(outcome.out, HasSubstr("new_tokens 128"));
  std::vector<std::string> said = job;
  said.insert(said.end(), {"--new-tokens", "128"});
  EXPECT_EQ(answer(job), answer(said));
}

TEST_F(JobFormsTest, AdaptersStandWhereTheirFamilyHasThem) {
  for (const auto& [model, targets] :
       {std::pair{"distilbert-base", "q_lin, v_lin"}, std::pair{"sd-1.5", "to_q, to_v"}}) {
    const Outcome outcome = run({"--model", model, "--sequence-length", "64", "--lora-rank", "8"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("LoRA adapts ") + targets));
  }
  EXPECT_THAT(run({"--model", "tinyllama-1.1b", "--sequence-length", "64", "--lora-rank", "8"}).out,
              ::testing::Not(HasSubstr("LoRA adapts")));
}

TEST_F(JobFormsTest, BareTensorsHaveNoProbabilityOfFitting) {
  json verdict = answer({"--model", "gpt2", "--sequence-length", "8", "--gpu", "t4", "--set",
                         "allocator.backend=none"})["verdict"];
  EXPECT_EQ(verdict["status"], "fits");
  EXPECT_TRUE(verdict["probability_fits"].is_null());
}

TEST_F(JobFormsTest, RefusesToTrainWhatHasNoParameters) {
  refuses_job(R"({"model": {"input": {"shape": [8]}, "layers": [{"type": "relu"}]}})",
              "set training.mode: inference");
}

TEST_F(JobFormsTest, AnySizeHasAShape) {
  for (const char* size : {"1e3", "1e6", "3e7", "1e13", "1e15"}) {
    const json parameters = answer(
        {"--set", std::string("model.parameters=") + size, "--sequence-length", "8"})["parameters"];
    const double ratio = parameters["total"].get<double>() / std::stod(size);
    EXPECT_LT(ratio, size == std::string("1e3") ? 60 : 1.3) << size;
    EXPECT_GT(ratio, 0.8) << size;
  }
}

TEST_F(JobFormsTest, RefusesUnclosedBracketsInOneSentence) {
  refuses({file("deep.json", std::string(std::size_t{1} << 20, '['))}, "deep");
  refuses({file("deep.yaml", std::string(std::size_t{1} << 20, '['))}, "deep.yaml");
  refuses({file("large.json", std::string((std::size_t{64} << 20) + 1, '['))}, "large.json");
}

}  // namespace
}  // namespace memfathom
