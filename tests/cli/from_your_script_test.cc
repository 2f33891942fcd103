// The five documents' command lines through the real binary: exit codes and JSON of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/advice_fixture.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FromYourScriptTest : public AdviceCommandTest {
 protected:
  std::vector<std::string> video(std::vector<std::string> more) const {
    std::vector<std::string> words{more.front(),
                                   "--model_path",
                                   example("CogVideoX-5b"),
                                   "--batch_size",
                                   "4",
                                   "--num_frames",
                                   "17",
                                   "--dtype",
                                   "float16",
                                   "--image-size",
                                   "256"};
    words.insert(words.end(), more.begin() + 1, more.end());
    return words;
  }
  static std::int64_t component(const json& result, const std::string& name,
                                const std::string& module) {
    for (const json& line : result["components"]) {
      if (line["name"] == name && line["module"] == module) return line["bytes"];
    }
    return -1;
  }
  std::vector<std::string> preference(std::vector<std::string> more) const {
    std::vector<std::string> words{more.front(), "--total_params", "8.0", "--num_gpus",
                                   "4",          "--batch_size",   "1",   "--sequence_length",
                                   "2048",       "--dtype",        "bf16"};
    words.insert(words.end(), more.begin() + 1, more.end());
    return words;
  }
  const std::vector<std::string> driver_{std::string("MEMFATHOM_NVML=") + MEMFATHOM_FAKE_NVML,
                                         "MEMFATHOM_FAKE_NAME=NVIDIA H100 80GB HBM3"};
};

TEST_F(FromYourScriptTest, ReadmeShowsTheProgramsOutput) {
  const Outcome outcome = run({"estimate", example("llama-2-7b-lora.yaml")});
  std::istringstream printed(outcome.out);
  std::string screen;
  for (std::string line; std::getline(printed, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    screen += line.empty() ? "\n" : "    " + line + "\n";
  }
  std::ifstream readme(project_directory() / "README.md");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(readme), {}), HasSubstr(screen));
}

TEST_F(FromYourScriptTest, ReadsAPipelineFolderAsModulesWithAFrozenCopy) {
  const json one = answer(video({"estimate"}));
  EXPECT_NEAR(static_cast<double>(component(one, "parameters", "transformer")), 2 * 5570283072.0,
              2e6);
  EXPECT_GT(component(one, "parameters", "text_encoder"), 9000000000);
  EXPECT_EQ(component(one, "gradients", "text_encoder"), -1);
  // Many small tensors: blocks that were not split are larger than what they hold.
  EXPECT_NEAR(static_cast<double>(component(one, "parameters", "vae")), 2 * 215583907.0, 2e7);
  EXPECT_EQ(component(one, "optimizer_state", "vae"), -1);
  const json two = answer(video({"estimate", "--frozen-copy", "--gpu", "rtx-6000-ada"}), 1);
  EXPECT_EQ(component(two, "parameters", "original"), component(one, "parameters", "transformer"));
  EXPECT_EQ(component(two, "optimizer_state", "original"), -1);
  EXPECT_FALSE(two["suggestions"].empty());
}

TEST_F(FromYourScriptTest, ReportsTheLocalGpuAndItsProcesses) {
  const json result = answer({"recommend", "--model", "gpt2", "--batch_size", "8",
                              "--sequence_length", "512", "--device_id", "0"},
                             0, driver_);
  EXPECT_EQ(result["device"]["total_bytes"], std::int64_t{80} << 30);
  EXPECT_EQ(result["device"]["available_bytes"], std::int64_t{76} << 30);
  EXPECT_EQ(result["device"]["processes"].at(0)["name"], "python");
  EXPECT_EQ(result["device"]["gpu"], "h100-80gb");
  EXPECT_EQ(result["capacity_bytes"], std::int64_t{80} << 30);
  // Four GiB are in use, and a tenth of the GPU stays free.
  EXPECT_EQ(result["available_bytes"], (std::int64_t{76} << 30) - (std::int64_t{8} << 30));
  EXPECT_THAT(result["checklist"].dump(), HasSubstr("python (pid 7)"));
  const Outcome text =
      run({"estimate", "--model", "gpt2", "--sequence-length", "64", "--device-id", "0"}, driver_);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out,
              StartsWith("cuda:0 NVIDIA H100 80GB HBM3: 80.00 GiB in all, 3.00 GiB used, 1.00 GiB "
                         "reserved by the driver, 76.00 GiB available"));
}

TEST_F(FromYourScriptTest, AutoWritesAConfigurationThatFits) {
  const Outcome outcome = run(video(
      {"recommend", "--frozen-copy", "--gpu", "rtx-6000-ada", "--auto", path("fitting.yaml")}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(run({"estimate", path("fitting.yaml")}).exit_code, 0);
}

TEST_F(FromYourScriptTest, OffloadedFrozenWeightsLeaveTheGpu) {
  const json result =
      answer(video({"compare", "--strategies",
                    "inference,inference+offload-parameters,frozen-copy+offload-parameters"}));
  const json& rows = result["strategies"];
  EXPECT_LT(rows[2]["device_peak_bytes"].get<double>(),
            0.3 * rows[1]["device_peak_bytes"].get<double>());
  // Inference offloads all weights; training only those of frozen modules.
  EXPECT_NEAR(rows[2]["host_peak_bytes"].get<double>(), rows[3]["host_peak_bytes"].get<double>(),
              1e7);
  EXPECT_EQ(rows[1]["trainable_parameters"], 0);
}

TEST_F(FromYourScriptTest, AGridComparesOffloadPrecisionAndBatch) {
  const json result = answer({"compare", example("adapters.yaml"), "--grid",
                              "baseline,offload-parameters", "precision=fp32,fp16", "batch=4,1"});
  ASSERT_EQ(result["strategies"].size(), 8U);
  EXPECT_EQ(result["baseline"], "baseline, precision=fp32, batch=4");
  EXPECT_EQ(result["strategies"][7]["grid"],
            (json{{"strategy", "offload-parameters"}, {"precision", "fp16"}, {"batch", "1"}}));
  for (const json& row : result["strategies"])
    EXPECT_EQ(row["trainable_parameters"], 42 * (2 * 3072 * 128 + 128 + 3072));
  EXPECT_EQ(run({"compare", example("adapters.yaml"), "--grid", "batch="}).exit_code, 2);
  EXPECT_EQ(run({"compare", example("adapters.yaml"), "--grid", "batch=1", "--strategies", "fp32"})
                .exit_code,
            2);
  EXPECT_THAT(
      run({"--format", "csv", "compare", example("adapters.yaml"), "--grid", "batch=4,1"}).out,
      StartsWith("batch,device_peak_bytes,saved_fraction,trainable_parameters,"));
}

TEST_F(FromYourScriptTest, RankedStrategiesSaveMostFirst) {
  const json rows = answer({"compare", example("adapters.yaml"), "--ranked", "--strategies",
                            "batch=2,checkpointing,fp32"})["strategies"];
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_GE(rows[i - 1]["saved_fraction"], rows[i]["saved_fraction"]);
}

TEST_F(FromYourScriptTest, ScriptYamlFreezesModulesByNameAndReceivesChangesInItsOwnKeys) {
  const json result =
      answer({"recommend", "--from", example("vla.yaml"), example("vla-train.yaml")});
  EXPECT_EQ(result["fits"], false);
  EXPECT_EQ(result["configurations"].size(), 3U);
  bool found = false;
  for (const json& suggestion : result["suggestions"]) {
    if (suggestion["name"] != "freeze-llama") continue;
    found = true;
    EXPECT_EQ(suggestion["file_patches"].at(0)["patch"],
              (json{{"model", {{"freeze_llama", true}}}}));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(result["checklist"].at(1)["name"], "others");
  EXPECT_EQ(result["checklist"].at(1)["done"], false);
}

TEST_F(FromYourScriptTest, ResolutionByGpuGridListsLargestBatches) {
  const json rows = answer({"recommend", "--batch", "8", "--height", "128", "--width", "128",
                            "--hidden_dim", "64", "--num_layers", "4", "--grid",
                            "gpu=v100-16gb,rtx-4090", "image=64,128"})["rows"];
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_GT(rows[0]["largest_batch"], rows[1]["largest_batch"]);
  EXPECT_GT(rows[2]["largest_batch"], rows[0]["largest_batch"]);
  for (const json& row : rows) EXPECT_LE(row["device_peak_bytes"], row["available_bytes"]);
  EXPECT_EQ(run({"recommend", "--model", "gpt2", "--sequence-length", "64", "--grid", "batch=1,2"})
                .exit_code,
            2);
  EXPECT_EQ(run({"recommend", job(), "--grid", "memory=1GiB,2GiB"}).exit_code, 1);
}

TEST_F(FromYourScriptTest, VerdictShowsTheRemainingMemoryInPercent) {
  const Outcome outcome = run({"estimate", "--config", example("fno_ocean.yaml")});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("GiB \\([0-9.]+ %\\) left"));
  EXPECT_EQ(run({"estimate", "--config", example("fno_ocean.yaml"), "--gpu_memory", "4"}).exit_code,
            1);
}

TEST_F(FromYourScriptTest, GivesAVerdictForSevenStrategiesOnEachTarget) {
  const json result = answer(preference({"compare", "--preference", "dpo", "--reference",
                                         "precomputed", "--targets", "a100-80gb,24GiB,8"}));
  ASSERT_EQ(result["strategies"].size(), 7U);
  for (const json& row : result["strategies"]) {
    ASSERT_EQ(row["targets"].size(), 3U);
    EXPECT_LE(row["targets"][2]["available_bytes"], std::int64_t{8} << 30);
    EXPECT_GT(row["targets"][2]["available_bytes"], std::int64_t{7} << 30);
    EXPECT_EQ(row["targets"][2]["verdict"], "does_not_fit");
  }
  EXPECT_THAT(run(preference({"compare", "--targets", "a100-80gb", "--format", "markdown"})).out,
              HasSubstr("| a100-80gb"));
}

TEST_F(FromYourScriptTest, RecommendsAConfigurationForEachMemoryClass) {
  const json classes = answer(preference({"recommend", "--by-memory"}))["classes"];
  ASSERT_EQ(classes.size(), 4U);
  EXPECT_EQ(classes[0]["gpu"], "a100-80gb");
  for (const json& entry : classes) {
    ASSERT_FALSE(entry["configuration"].is_null()) << entry;
    EXPECT_LT(entry["configuration"]["used_fraction"], 0.9);
  }
  EXPECT_EQ(run({"recommend", "--model", "deepseek-v3", "--sequence-length", "512", "--mode",
                 "inference", "--by-memory", "--set", "target.host_memory=8GiB"})
                .exit_code,
            1);
}

TEST_F(FromYourScriptTest, ReportsContradictingFilesInEveryAnswer) {
  const std::string args =
      file("args.json", R"({"per_device_train_batch_size": 2, "max_length": 64})");
  const std::string engine = file(
      "ds.json",
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1}})");
  const json result =
      answer({"estimate", "--from", data("tiny-llama"), args, engine, "--num-gpus", "2"});
  EXPECT_THAT(result["warnings"].dump(), HasSubstr("training.batch_size is 2 in"));
  EXPECT_EQ(answer({"recommend", "--from", data("tiny-llama"), args, engine, "--num-gpus",
                    "2"})["warnings"],
            result["warnings"]);
}

}  // namespace
}  // namespace memfathom
