// recommend, compare, check, gpus, models and --from, through the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/advice_fixture.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(AdviceCommandTest, GpusListsGpusByMemorySize) {
  const json gpus = answer({"gpus"})["gpus"];
  ASSERT_GT(gpus.size(), 50U);
  std::int64_t before = 0;
  for (const json& gpu : gpus) {
    EXPECT_GE(gpu["memory_bytes"], before);
    before = gpu["memory_bytes"];
    EXPECT_TRUE(gpu.contains("name") && gpu.contains("architecture") && gpu.contains("vendor"));
  }
}

TEST_F(AdviceCommandTest, GpusFitsListsOnlyGpusWithEnoughMemory) {
  const json gpus = answer({"gpus", "--fits", job()})["gpus"];
  ASSERT_FALSE(gpus.empty());
  for (const json& gpu : gpus) EXPECT_LE(gpu["device_peak_bytes"], gpu["memory_bytes"]);
  EXPECT_EQ(run({"gpus", "--fits", job(), "--batch-size", "1000000"}).exit_code, 1);
}

TEST_F(AdviceCommandTest, GpusCsvHasMemoryInBytes) {
  EXPECT_THAT(run({"gpus", "--format", "csv"}).out, HasSubstr("\nt4,16106127360,sm_75,"));
  EXPECT_THAT(run({"gpus", "--fits", job(), "--batch-size", "1", "--format", "csv"}).out,
              HasSubstr("\nt4,16106127360,"));
}

TEST_F(AdviceCommandTest, ModelsListsParameterCountsOfTheBuiltModels) {
  bool found = false;
  const json models = answer({"models"})["models"];
  for (const json& model : models) {
    EXPECT_GT(model["parameters"], 0) << model;
    if (model["name"] == "llama-2-7b") found = model["parameters"] == 6738415616;
  }
  EXPECT_TRUE(found);
}

TEST_F(AdviceCommandTest, RecommendListsPatchesWithTheirSavings) {
  const json result = answer({"recommend", job()});
  EXPECT_EQ(result["schema"], "memfathom.recommend/1");
  EXPECT_EQ(result["fits"], false);
  const json& first = result["suggestions"].at(0);
  EXPECT_EQ(
      first["saves_bytes"].get<std::int64_t>() + first["device_peak_bytes"].get<std::int64_t>(),
      result["device_peak_bytes"]);
  EXPECT_EQ(result["configurations"].size(), 3U);
  EXPECT_EQ(run({"recommend", job(), "--set", "target.memory=1500MiB"}).exit_code, 1);
  EXPECT_EQ(run({"recommend"}).exit_code, 2);
  EXPECT_EQ(run({"recommend", job(), "--probability", "2"}).exit_code, 2);
}

TEST_F(AdviceCommandTest, EstimateStartsWithTheJobAndListsItsAssumptions) {
  const std::vector<std::string> words{"--model", "gpt2", "--sequence-length", "64"};
  std::vector<std::string> command{"estimate"};
  command.insert(command.end(), words.begin(), words.end());
  const std::string text = run(command).out;
  EXPECT_THAT(text, StartsWith("gpt2, training: batch 1 of 64 tokens, fp32, adamw; 124.4 M param"));
  EXPECT_THAT(
      text,
      HasSubstr("assumed: batch_size 1, precision fp32, optimizer adamw (not set in the job)"));
  EXPECT_EQ(answer(command)["job"], "gpt2, training: batch 1 of 64 tokens, fp32, adamw");
  command.front() = "recommend";
  EXPECT_THAT(run(command).out, StartsWith("gpt2, training: batch 1 of 64 tokens, fp32, adamw"));
}

TEST_F(AdviceCommandTest, PrintsTheVerdictBeforeTheComponentsLargestFirst) {
  const std::string text = run({"estimate", job(), "--gpu", "t4"}).out;
  const std::size_t verdict = text.find("does not fit on t4: ");
  ASSERT_NE(verdict, std::string::npos) << text;
  EXPECT_LT(verdict, text.find("component "));
  EXPECT_LT(text.find("\nactivations "), text.find("\nparameters "));
  EXPECT_THAT(text, HasSubstr(" smaller components"));
  EXPECT_THAT(run({"estimate", job(), "--explain"}).out, Not(HasSubstr(" smaller components")));
}

TEST_F(AdviceCommandTest, PrintsHostMemoryPerProcessAndPerNode) {
  const std::vector<std::string> words{"estimate",
                                       "--from",
                                       data("tiny-llama"),
                                       data("training_args.json"),
                                       data("deepspeed.json"),
                                       "--num-gpus",
                                       "16"};
  EXPECT_THAT(run(words).out, HasSubstr(" per GPU process, "));
  EXPECT_THAT(run(words).out, HasSubstr(" for the 8 processes of a node\n"));
}

TEST_F(AdviceCommandTest, ReportIsASelfContainedPage) {
  const std::string hostile = file(
      "job.yaml",
      "id: \"<script>\"\nmodel: {preset: gpt2}\ntraining: {batch_size: 64, sequence_length: 512}\n"
      "target: {memory: 16GiB}\n");
  const Outcome outcome = run({"report", "estimate", hostile, "--output", path("page.html")});
  EXPECT_EQ(outcome.exit_code, 1);
  const std::string page = text_of(path("page.html"));
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  for (const char* part : {"does not fit: ", "<svg ", "Changes that save memory", ">backward 2<",
                           "How each value is computed", "&lt;script&gt;"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* part : {"<script", "http://", "https://", "src="})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_EQ(run({"report"}).exit_code, 2);
  EXPECT_EQ(run({"report", "weather"}).exit_code, 2);
  EXPECT_THAT(run({"report", "calibrations", "x"}).err, HasSubstr("did you mean \"calibration\"?"));
  EXPECT_EQ(run({"--format", "json", "report", "estimate", hostile}).exit_code, 2);
}

TEST_F(AdviceCommandTest, AcceptsOlderCommandLines) {
  const std::vector<std::string> words{"estimate", "--model", "gpt2", "--sequence-length", "64"};
  const auto peak = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return answer(more)["totals"]["device_peak_bytes"];
  };
  EXPECT_EQ(peak({"--gradient_checkpointing", "True"}), peak({"--gradient-checkpointing"}));
  EXPECT_EQ(peak({"--gradient_checkpointing", "False"}), peak({}));
  EXPECT_NE(peak({"--gradient_checkpointing", "True"}), peak({}));
  EXPECT_EQ(peak({"--dtype", "torch.bfloat16"}), peak({"--dtype", "bf16"}));
  const auto error = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"--dtype", "int8"}), HasSubstr("--load-in-8bit"));
  EXPECT_THAT(error({"--total-params", "8000000000"}), HasSubstr("use 8.0 for a model with"));
}

TEST_F(AdviceCommandTest, CalibrationReportHasASourceForEveryCoefficient) {
  const std::string name = "a100-40gb/pytorch";
  const Outcome outcome = run({"report", "calibration", name});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(outcome.out, EndsWith("</html>\n"));
  for (const char* part : {"<svg ", "published: held-out error median ", "95th percentile",
                           ">context</td>", "Provenance"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  for (const char* part : {"<script", "src=", "<link"})
    EXPECT_THAT(outcome.out, Not(HasSubstr(part)));
  const nlohmann::json shown = answer({"calibrations", "show", name});
  for (const nlohmann::json& coefficient : shown.at("coefficients")) {
    EXPECT_THAT(outcome.out, HasSubstr(">" + coefficient.at("name").get<std::string>() + "</td>"));
  }
  EXPECT_EQ(run({"report", "calibration"}).exit_code, 2);
  EXPECT_THAT(run({"report", "calibration", "no/such"}).err, HasSubstr("calibrations list"));
  EXPECT_THAT(run({"report", "calibration", name, "--format", "json"}).err,
              HasSubstr("memfathom calibrations show NAME --format json"));
}

TEST_F(AdviceCommandTest, EstimateCsvContainsOnlyTheComponents) {
  const std::string text =
      run({"estimate", "--model", "gpt2", "--sequence-length", "64", "--format", "csv"}).out;
  EXPECT_THAT(text, StartsWith("component,module,bytes,source,coefficient\r\nparameters,,498"));
  const std::size_t last = text.rfind("device_peak,,");
  ASSERT_NE(last, std::string::npos);
  EXPECT_EQ(text.find('\n', last), text.size() - 1);
}

TEST_F(AdviceCommandTest, ReportsTheAssumedSequenceLengthOfATrainerFile) {
  const std::string args = file("args.json", R"({"per_device_train_batch_size": 2})");
  const Outcome outcome = run({"estimate", args, "--model", "gpt2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("gpt2, training: batch 2 of 1024 tokens"));
  EXPECT_THAT(outcome.out,
              HasSubstr("assumed: no file sets the sequence length; using 1024 tokens."));
  EXPECT_EQ(run({"estimate", "--model", "gpt2"}).exit_code, 2) << "flags must say it";
}

TEST_F(AdviceCommandTest, NamesTheMissingModelThatAFileRefersTo) {
  const std::string file_name = file("axolotl.yml", "base_model: acme/Strange\nlora_r: 8\n");
  const Outcome outcome = run({"estimate", file_name, "--gpu", "t4"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("axolotl.yml names the model acme/Strange, which is neither a preset nor"));
  EXPECT_THAT(outcome.err, HasSubstr("--model FOLDER"));
}

TEST_F(AdviceCommandTest, AGpuMayBeGivenByAShorterName) {
  const auto on = [&](const char* gpu) {
    return json::parse(run({"estimate", job(), "--gpu", gpu, "--format", "json"}).out);
  };
  EXPECT_EQ(on("4090")["verdict"]["capacity_bytes"], on("rtx-4090")["verdict"]["capacity_bytes"]);
  EXPECT_THAT(on("a100")["assumptions"].dump(), HasSubstr("a100-40gb, was taken"));
  const Outcome unknown = run({"estimate", job(), "--gpu", "rtx-4091"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean rtx-4090"));
}

TEST_F(AdviceCommandTest, AMemoryInMebibytesIsAskedBack) {
  const Outcome outcome = run({"estimate", job(), "--gpu-memory", "24576"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("24576 GiB is more than any GPU has; 24576MiB?"));
  EXPECT_NE(run({"estimate", job(), "--gpu-memory", "24576MiB"}).exit_code, 2);
}

TEST_F(AdviceCommandTest, AFrameworkWithoutCalibrationsIsRefused) {
  const Outcome outcome = run({"estimate", job(), "--set", "target.stack.framework=banana"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("pytorch, memfathom"));
}

TEST_F(AdviceCommandTest, ShardingAmongAnUnknownNumberOfGpusDoesNotRuleAFitOut) {
  const std::string zero3 =
      file("zero3.json", R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})");
  const auto verdict = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"estimate", "--from", zero3, "--model", "llama-2-7b"});
    const json result = answer(more);
    return result["verdict"]["status"].get<std::string>();
  };
  EXPECT_EQ(verdict({"--gpu", "a100-40gb"}), "undecided");
  EXPECT_EQ(verdict({"--gpu", "b200"}), "tight") << "on more GPUs it takes less";
  const json one = answer(
      {"estimate", "--from", zero3, "--model", "llama-2-7b", "--gpu", "t4", "--num-gpus", "1"}, 1);
  EXPECT_EQ(one["verdict"]["status"], "does_not_fit");
}

TEST_F(AdviceCommandTest, AnAssumedLengthDoesNotRuleAFitOut) {
  const std::string arguments = file("args.json", R"({"per_device_train_batch_size": 256,
      "output_dir": "x", "bf16": true})");
  const auto verdict = [&](std::vector<std::string> more, int exit_code) {
    more.insert(more.begin(), {"estimate", "--from", arguments, "--gpu", "a100-40gb"});
    return answer(more, exit_code)["verdict"]["status"].get<std::string>();
  };
  EXPECT_EQ(verdict({"--model", "gpt2"}, 0), "undecided");
  EXPECT_EQ(verdict({"--model", "gpt2", "--sequence-length", "1024"}, 1), "does_not_fit");
  EXPECT_EQ(verdict({"--model", "llama-2-70b"}, 1), "does_not_fit") << "its weights alone";
  EXPECT_EQ(verdict({"--model", "llama-2-7b"}, 1), "does_not_fit")
      << "weights, gradients and states in the optimizer's step";
}

TEST_F(AdviceCommandTest, AnUnreadKeyThatMayChangeTheMemoryLeavesTheVerdictUndecided) {
  const std::string file_name =
      file("axolotl.yml",
           "base_model: gpt2\nsequence_len: 64\nmicro_batch_size: 1\n"
           "gradient_checkpoint: true\nlora: {extra_rank: 4}\ncolour: blue\n");
  const json result = answer({"estimate", file_name, "--gpu", "t4"});
  EXPECT_EQ(result["verdict"]["status"], "undecided");
  EXPECT_TRUE(result["verdict"]["probability_fits"].is_null());
  EXPECT_EQ(result["unread"].size(), 3u);
  EXPECT_EQ(result["unread"][0]["key"], "gradient_checkpoint");
  EXPECT_EQ(result["unread"][0]["concerns"], "checkpointing");
  EXPECT_TRUE(result["unread"][2]["concerns"].is_null());
  const Outcome text = run({"estimate", file_name, "--gpu", "t4"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("undecided on t4: "));
  EXPECT_THAT(text.out, HasSubstr("gradient_checkpoint (did you mean gradient_checkpointing?), "
                                  "lora.extra_rank, colour; they may affect memory"));
  EXPECT_THAT(text.out, testing::Not(HasSubstr("probability")));
  EXPECT_EQ(run({"estimate", file_name, "--gpu", "t4", "--strict"}).exit_code, 3);
  EXPECT_EQ(run({"check", file_name, "--gpu", "t4", "--strict"}).exit_code, 3);
  EXPECT_TRUE(answer({"recommend", file_name, "--gpu", "t4"}, 3)["fits"].is_null());
  for (const json& row : answer({"compare", file_name, "--gpu", "t4"})["strategies"])
    EXPECT_EQ(row["verdict"], "undecided");
}

TEST_F(AdviceCommandTest, CompareOmitsStrategiesThatChangeNothing) {
  const json in_bf16 = answer({"compare", job(), "--dtype", "bf16"});
  for (const json& row : in_bf16["strategies"]) EXPECT_NE(row["name"], "bf16");
  EXPECT_EQ(
      answer({"compare", job(), "--dtype", "bf16", "--strategies", "bf16"})["strategies"].size(),
      2U)
      << "what is asked for by name is answered";
  EXPECT_THAT(run({"compare", job(), "--strategies", "bf16"}).out,
              StartsWith("gpt2, training: batch 64 of 512 tokens"));
}

TEST_F(AdviceCommandTest, TrainerBf16OverridesTheConfigDtypeUnlessAFlagIsGiven) {
  const auto line = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words{"estimate", "--from", data("tiny-llama"),
                                   data("training_args.json")};
    words.insert(words.end(), flags.begin(), flags.end());
    return run(words).out;
  };
  EXPECT_THAT(line({}), HasSubstr("128 tokens, bf16, adamw"));
  EXPECT_THAT(line({"--precision", "amp-bf16"}), HasSubstr("128 tokens, amp-bf16, adamw"));
  const std::string launcher = file(
      "accelerate.yaml", "{distributed_type: MULTI_GPU, num_processes: 2, mixed_precision: bf16}");
  EXPECT_THAT(line({"--from", launcher}), HasSubstr("128 tokens, bf16, adamw"));
  EXPECT_THAT(line({"--set", "target.stack.transformers=4.57"}),
              HasSubstr("128 tokens, amp-bf16, adamw"));
}

TEST_F(AdviceCommandTest, ATightJobIsNotReportedAsExceedingTheGpu) {
  const json base = answer({"estimate", job(), "--gpu-memory", "140"});
  const double peak = base["totals"]["device_peak_bytes"].get<double>() / (1 << 30);
  const std::string memory = std::to_string(1.12 * peak);
  const std::string text = run({"recommend", job(), "--gpu-memory", memory}).out;
  EXPECT_THAT(text, HasSubstr("it may not fit: the interval reaches"));
}

TEST_F(AdviceCommandTest, AutoWritesAJobThatFits) {
  const std::string fitting = (directory_ / "fitting.yaml").string();
  EXPECT_EQ(run({"recommend", job(), "--auto", fitting}).exit_code, 0);
  EXPECT_EQ(run({"estimate", fitting}).exit_code, 0);
  EXPECT_EQ(run({"estimate", job()}).exit_code, 1);
}

TEST_F(AdviceCommandTest, AutoKeepsTheFormatOfTheInputFile) {
  const std::string written = (directory_ / "axolotl.yaml").string();
  EXPECT_EQ(
      run({"recommend", data("axolotl.yaml"), "--gpu-memory", "9", "--auto", written}).exit_code,
      0);
  const std::string text = text_of(written);
  EXPECT_THAT(text, HasSubstr("base_model: NousResearch/Llama-2-7b-hf"));
  EXPECT_EQ(run({"estimate", written, "--gpu-memory", "9"}).exit_code, 0);
}

TEST_F(AdviceCommandTest, SuggestsChangesOnlyIfTheJobDoesNotFit) {
  const json no = answer({"estimate", job()}, 1);
  ASSERT_FALSE(no["suggestions"].empty());
  EXPECT_TRUE(no["suggestions"].at(0).contains("patch"));
  EXPECT_TRUE(answer({"estimate", job(), "--gpu-memory", "140"})["suggestions"].empty());
}

TEST_F(AdviceCommandTest, CompareListsStrategiesAgainstTheJob) {
  const json result = answer({"compare", job(), "--strategies", "checkpointing,batch=1+amp"});
  EXPECT_EQ(result["schema"], "memfathom.compare/1");
  EXPECT_EQ(result["baseline"], "baseline");
  ASSERT_EQ(result["strategies"].size(), 3U);
  EXPECT_EQ(result["strategies"][0]["saved_fraction"], 0.0);
  EXPECT_GT(result["strategies"][1]["saved_fraction"], 0.0);
  EXPECT_EQ(result["strategies"][2]["verdict"], "fits");
  EXPECT_EQ(run({"compare", job(), "--strategies", "magic"}).exit_code, 2);
  EXPECT_THAT(run({"--format", "csv", "compare", job()}).out,
              StartsWith("strategy,device_peak_bytes,"));
  EXPECT_THAT(run({"--format", "markdown", "compare", job()}).out, StartsWith("| strategy"));
  const std::string patch = file("smaller.yaml", "training: {batch_size: 2}\n");
  EXPECT_EQ(answer({"compare", job(), "--patch", patch})["strategies"].size(), 2U);
}

TEST_F(AdviceCommandTest, CheckRunsTheCommandOnlyIfTheJobFits) {
  const Outcome no = run({"check", job(), "--", "echo", "ran"});
  EXPECT_EQ(no.exit_code, 1);
  EXPECT_THAT(no.out, IsEmpty());
  EXPECT_THAT(no.err, HasSubstr("does not fit"));
  const Outcome yes =
      run({"check", job(), "--batch-size", "1", "--", "sh", "-c", "echo ran; exit 7"});
  EXPECT_EQ(yes.exit_code, 7);
  EXPECT_EQ(yes.out, "ran\n");
  EXPECT_THAT(yes.err, StartsWith("fits"));
  EXPECT_EQ(run({"check", job(), "--batch-size", "1", "--", "/nonexistent/program"}).exit_code, 4);
  EXPECT_EQ(run({"check", job(), "--batch-size", "1", "--", "sh", "-c", "kill -TERM $$"}).exit_code,
            143);
  EXPECT_EQ(run({"check", "--model", "gpt2", "--sequence-length", "8"}).exit_code, 2);
  const Outcome strict =
      run({"check", job(), "--batch-size", "1", "--strict", "--", "echo", "ran"});
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_THAT(strict.err, HasSubstr("echo was not started: --strict requires a calibration"));
}

TEST_F(AdviceCommandTest, MergesSeveralFilesIntoOneJob) {
  const json result = answer({"estimate", "--from", data("tiny-llama"), data("training_args.json"),
                              data("deepspeed.json"), "--num-gpus", "4"});
  EXPECT_GT(result["totals"]["host_peak_bytes"], 0);
  EXPECT_EQ(result["totals"]["host_node_bytes"],
            4 * result["totals"]["host_peak_bytes"].get<std::int64_t>());
  EXPECT_THAT(result["not_modelled"].dump(), HasSubstr("torch_compile"));
}

TEST_F(AdviceCommandTest, WritesTheTimelineAsATraceThatAddsUp) {
  const json result = answer({"estimate", "--model", "gpt2", "--batch-size", "2", "--trace-out",
                              path("trace.json"), "--sequence-length", "128"});
  const json trace = json::parse(text_of(path("trace.json")));
  std::int64_t allocated = 0, reserved = 0, last = -1, in_phases = 0;
  std::vector<std::string> phases;
  for (const json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 1);
    if (event["ph"] == "X") {
      EXPECT_EQ(event["ts"], in_phases) << "phases follow each other";
      in_phases += event["dur"].get<std::int64_t>();
      phases.push_back(event["name"]);
    } else if (event["ph"] == "C" && event["name"] == "allocated") {
      std::int64_t sum = 0;
      for (const json& bytes : event["args"]) sum += bytes.get<std::int64_t>();
      allocated = std::max(allocated, sum);
      last = event["ts"];
    } else if (event["ph"] == "C") {
      reserved = std::max(reserved, event["args"]["bytes"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(in_phases, last + 1);
  EXPECT_THAT(phases, testing::ElementsAre("load", "forward 1", "backward 1", "step 1", "forward 2",
                                           "backward 2", "step 2"));
  const json& totals = result["totals"];
  EXPECT_EQ(allocated,
            std::max(totals["allocated_peak_bytes"].get<std::int64_t>(),
                     totals["first_iteration_allocated_peak_bytes"].get<std::int64_t>()));
  EXPECT_EQ(reserved, totals["reserved_peak_bytes"]);
}

TEST_F(AdviceCommandTest, ReportOfAJobThatDoesNotFitShowsConfigurationsThatFit) {
  const Outcome outcome =
      run({"report", "estimate", "--model", "llama-2-7b", "--lora-rank", "8", "--batch-size", "8",
           "--sequence-length", "2048", "--dtype", "bf16", "--gpu", "rtx-4090"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("Configurations that fit"));
  EXPECT_THAT(outcome.out, HasSubstr("<td data-title=\"configuration\">balanced</td>"));
  EXPECT_THAT(outcome.out, HasSubstr("allocations, not to scale in time"));
  EXPECT_THAT(outcome.out, HasSubstr("<title>load: allocated "));
}

TEST_F(AdviceCommandTest, ReportDrawsTheAvailableMemoryInTheTimeline) {
  const Outcome outcome = run({"report", "estimate", "--model", "gpt2", "--batch-size", "16",
                               "--sequence-length", "1024", "--gpu-memory", "16"});
  const std::size_t timeline = outcome.out.find("Memory during loading");
  ASSERT_NE(timeline, std::string::npos);
  EXPECT_THAT(outcome.out.substr(timeline), HasSubstr("class=\"limit\""));
}

TEST_F(AdviceCommandTest, PrintsTheRuleOfThumbNextToTheEstimate) {
  const json result =
      answer({"estimate", "--batch", "8", "--height", "128", "--width", "128", "--hidden_dim",
              "256", "--num_layers", "10", "--gpu_memory", "24", "--rule-of-thumb"});
  EXPECT_EQ(result["rule_of_thumb"]["activations_bytes"], 1342177280);
  EXPECT_EQ(result["rule_of_thumb"]["safe"], true);
  EXPECT_GT(result["totals"]["device_peak_bytes"], 1342177280);
}

}  // namespace
}  // namespace memfathom
