#include "estimator/readers/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/parsed_file.h"
#include "estimator/session/job_input.h"
#include "tests/estimator/readers/parsed_value.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Node settings_of(const std::string& path) { return patch_tree(read_path(path).front().settings); }

ParsedFile reading_of_json(const char* json) {
  const Node tree = parse_json(json, "x.json");
  return read_tree(tree, detect_format(tree));
}

TEST(FormatsTest, EachFileIsRecognisedByWhatItHolds) {
  EXPECT_EQ(read_path(data("training_args.json")).front().format, FileFormat::kTrainingArguments);
  EXPECT_EQ(read_path(data("deepspeed.json")).front().format, FileFormat::kDeepSpeed);
  EXPECT_EQ(read_path(data("accelerate.yaml")).front().format, FileFormat::kAccelerate);
  EXPECT_EQ(read_path(data("axolotl.yaml")).front().format, FileFormat::kAxolotl);
  EXPECT_EQ(read_path(data("fno_ocean.yaml")).front().format, FileFormat::kTrainYaml);
  EXPECT_EQ(read_path(data("tiny-llama/config.json")).front().format, FileFormat::kModelConfig);
}

TEST(FormatsTest, AFolderIsItsModelAndItsAdapter) {
  const std::vector<ParsedFile> parsed_files = read_path(data("tiny-llama"));
  ASSERT_EQ(parsed_files.size(), 2U);
  EXPECT_EQ(parsed_files[0].format, FileFormat::kModelConfig);
  EXPECT_EQ(parsed_files[1].format, FileFormat::kAdapter);
  EXPECT_TRUE(
      patch_tree(parsed_files[1].settings)
          .same_value(parse_yaml(
              "training: {lora: {rank: 4, targets: [q_proj, v_proj], dropout: 0.05}}", "x.yaml")));
}

TEST(FormatsTest, TrainingArgumentsBecomeTrainingKeys) {
  const Node training = settings_of(data("training_args.json")).at("training");
  EXPECT_EQ(training.at("batch_size").as_int(), 2);
  EXPECT_EQ(training.at("precision").as_string(), "amp-bf16");
  EXPECT_EQ(training.at("gradient_checkpointing").as_string(), "full");
  EXPECT_EQ(training.at("optimizer").as_string(), "adamw-fused");
  EXPECT_TRUE(training.at("gradient_clipping").as_bool());
  EXPECT_THAT(read_path(data("training_args.json")).front().not_modelled,
              Contains(HasSubstr("torch_compile")));
}

TEST(FormatsTest, AKeyThatIsNearlyOneThatIsReadIsNamed) {
  const ParsedFile axolotl =
      reading_of_json(R"({"base_model": "gpt2", "micro_batch_sise": 4, "sequence_len": 512})");
  ASSERT_EQ(axolotl.unread.size(), 1u);
  EXPECT_EQ(axolotl.unread[0].key, "micro_batch_sise");
  EXPECT_EQ(axolotl.unread[0].nearest, "micro_batch_size");
  const ParsedFile nested = reading_of_json(
      R"({"train_micro_batch_size_per_gpu": 1,
          "zero_optimization": {"stage": 2, "reduce_buket_size": 5}})");
  ASSERT_EQ(nested.unread.size(), 1u);
  EXPECT_EQ(nested.unread[0].nearest, "zero_optimization.reduce_bucket_size");
}

TEST(FormatsTest, TheTrainersOwnBatchOfEightIsAssumedAndSaid) {
  const ParsedFile parsed = reading_of_json(R"({"output_dir": "x", "fp16": true})");
  EXPECT_EQ(patch_tree(parsed.settings).at("training").at("batch_size").as_int(), 8);
  EXPECT_THAT(parsed.assumptions, Contains(HasSubstr("default of 8")));
}

TEST(FormatsTest, DeepSpeedSaysStagesBucketsAndOffloadAndLeavesAutoOpen) {
  const ParsedFile parsed = read_path(data("deepspeed.json")).front();
  const Node parallel = patch_tree(parsed.settings).at("parallel");
  EXPECT_EQ(parallel.at("zero_stage").as_int(), 2);
  EXPECT_EQ(parallel.at("offload").at("optimizer").as_string(), "cpu");
  EXPECT_EQ(parallel.at("zero").at("allgather_bucket_size").as_int(), 200000000);
  EXPECT_THAT(parsed.autos, Contains("zero_optimization.reduce_bucket_size"));
  EXPECT_THAT(parsed.autos, Contains("bf16.enabled"));
}

TEST(FormatsTest, NvmeIsCountedAsHostMemoryAndSaid) {
  const ParsedFile parsed = reading_of_json(
      R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})");
  EXPECT_EQ(patch_tree(parsed.settings).at("parallel").at("offload").at("parameters").as_string(),
            "cpu");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("NVMe")));
}

TEST(FormatsTest, AccelerateKnowsFsdp) {
  const Node settings = settings_of(data("accelerate.yaml"));
  EXPECT_EQ(settings.at("parallel").at("num_gpus").as_int(), 4);
  EXPECT_EQ(settings.at("parallel").at("fsdp").as_string(), "full");
  EXPECT_EQ(settings.at("training").at("precision").as_string(), "amp-bf16");
}

TEST(FormatsTest, AxolotlNamesItsModelByTheHub) {
  EXPECT_EQ(read_path(data("axolotl.yaml")).front().base_model, "NousResearch/Llama-2-7b-hf");
  const Node settings = settings_of(data("axolotl.yaml"));
  EXPECT_EQ(settings.at("training").at("quantization").as_string(), "nf4-double");
  EXPECT_EQ(settings.at("training").at("lora").at("targets").items().size(), 7U);
  EXPECT_EQ(settings.at("training").at("attention").as_string(), "flash");
}

TEST(FormatsTest, LlamaFactoryMeansAdaptersOnEveryLinearLayerAndCheckpointing) {
  const ParsedFile parsed = reading_of_json(R"({"model_name_or_path": "Qwen/Qwen2-7B-Instruct",
    "stage": "dpo", "finetuning_type": "lora", "lora_target": "all", "cutoff_len": 1024,
    "quantization_bit": 4, "flash_attn": "fa2", "bf16": true, "use_dora": true})");
  EXPECT_EQ(parsed.format, FileFormat::kLlamaFactory);
  EXPECT_EQ(parsed.base_model, "Qwen/Qwen2-7B-Instruct");
  const Node training = patch_tree(parsed.settings).at("training");
  EXPECT_EQ(training.at("lora").at("rank").as_int(), 8);
  EXPECT_EQ(training.at("lora").at("targets").items().front().as_string(), "all-linear");
  EXPECT_EQ(training.at("quantization").as_string(), "nf4-double");
  EXPECT_EQ(training.at("preference").at("reference").as_string(), "disabled-adapter");
  EXPECT_EQ(training.at("gradient_checkpointing").as_string(), "full");
  EXPECT_EQ(training.at("attention").as_string(), "flash");
  EXPECT_EQ(training.at("precision").as_string(), "bf16");
  EXPECT_EQ(training.at("autocast").as_string(), "bf16");
  EXPECT_EQ(training.at("batch_size").as_int(), 8);
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("use_dora")));
}

TEST(FormatsTest, LlamaFactoryTrainsWholeModelsInFp32UnderAutocast) {
  const Node whole =
      patch_tree(
          reading_of_json(R"({"finetuning_type": "full", "bf16": true, "lora_rank": 8})").settings)
          .at("training");
  EXPECT_EQ(whole.at("precision").as_string(), "amp-bf16");
  EXPECT_EQ(whole.find("lora"), nullptr);
  const Node pure =
      patch_tree(reading_of_json(R"({"finetuning_type": "full", "pure_bf16": true})").settings)
          .at("training");
  EXPECT_EQ(pure.at("precision").as_string(), "bf16");
}

TEST(FormatsTest, LlamaFactoryFreezesWhatSeesUnlessToldOtherwise) {
  const auto training = [](const char* json) {
    return patch_tree(reading_of_json(json).settings).at("training");
  };
  const Node usual = training(R"({"finetuning_type": "lora", "image_max_pixels": 262144})");
  EXPECT_EQ(usual.at("freeze").items().size(), 2U);
  EXPECT_EQ(usual.at("image_size").as_int(), 512);
  const Node thawed = training(R"({"finetuning_type": "full", "freeze_vision_tower": false})");
  ASSERT_EQ(thawed.at("freeze").items().size(), 1U);
  EXPECT_EQ(thawed.at("freeze").items().front().as_string(), "projector");
  EXPECT_EQ(training(R"({"finetuning_type": "full", "cutoff_len": 8})").find("freeze"), nullptr);
}

TEST(FormatsTest, AWrongValueIsRefusedWithItsFileLineAndKey) {
  try {
    reading_of_json("{\"peft_type\": \"LORA\",\n \"r\": 0}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x.json:2: \"r\" is 0; it must be at least 1");
  }
  EXPECT_THROW(reading_of_json(R"({"bf16": {"enabled": "perhaps"}})"), Error);
  EXPECT_THROW(reading_of_json("[1, 2]"), Error);
  EXPECT_THROW(read_path(test_data().string()), Error);
}

// Recipes of TRL keep the model's arguments beside the Trainer's.
TEST(TrlTest, ARecipeOfDpoHasPairsAndAdaptersAndWeightsInFewBits) {
  const ParsedFile parsed = reading_of_json(
      R"({"model_name_or_path": "x/y-7b", "torch_dtype": "bfloat16", "attn_implementation": "flash_attention_2", "use_peft": true,
          "load_in_4bit": true, "lora_r": 128, "lora_target_modules": ["q_proj", "o_proj"], "bf16": true, "beta": 0.01,
          "max_length": 1024, "per_device_train_batch_size": 4, "output_dir": "x"})");
  const Node training = patch_tree(parsed.settings).at("training");
  EXPECT_EQ(training.at("precision").as_string(), "bf16");
  EXPECT_EQ(training.at("autocast").as_string(), "bf16");
  EXPECT_EQ(training.at("attention").as_string(), "flash");
  EXPECT_EQ(training.at("quantization").as_string(), "nf4");
  EXPECT_EQ(training.at("lora").at("rank").as_int(), 128);
  EXPECT_EQ(training.at("lora").at("dropout").as_number(), 0.05);
  EXPECT_EQ(training.at("preference").at("method").as_string(), "dpo");
  EXPECT_EQ(training.at("preference").at("reference").as_string(), "disabled-adapter");
  EXPECT_THAT(parsed.assumptions, Contains(HasSubstr("pairs of answers")));
}

TEST(TrlTest, FullTrainingOfPreferencesHasAReferenceUnlessTheMethodHasNone) {
  const auto reference = [](const char* json) {
    return patch_tree(reading_of_json(json).settings)
        .at("training")
        .at("preference")
        .at("reference")
        .as_string();
  };
  EXPECT_EQ(reference(R"({"output_dir": "x", "bf16": true, "beta": 0.1})"), "model");
  EXPECT_EQ(reference(R"({"output_dir": "x", "beta": 0.1, "precompute_ref_log_probs": true})"),
            "precomputed");
  EXPECT_EQ(reference(R"({"output_dir": "x", "beta": 0.1, "loss_type": "simpo"})"), "none");
  const auto length = [](const char* json) {
    return patch_tree(reading_of_json(json).settings).at("training").at("sequence_length").as_int();
  };
  EXPECT_EQ(length(R"({"output_dir": "x", "beta": 0.1})"), 1024);
  EXPECT_EQ(length(R"({"output_dir": "x", "beta": 0.1, "max_seq_length": 4096})"), 4096);
  const ParsedFile grpo =
      reading_of_json(R"({"output_dir": "x", "beta": 0.1, "num_generations": 8})");
  EXPECT_EQ(patch_tree(grpo.settings).at("training").find("preference"), nullptr);
  EXPECT_THAT(grpo.not_modelled, Contains(HasSubstr("generated in training")));
}

TEST(AxolotlTest, ReadsItsNewerWords) {
  const ParsedFile parsed = reading_of_json(
      R"({"base_model": "x/y-8b", "micro_batch_size": 1, "bf16": "auto", "attn_implementation": "flash_attention_2", "optimizer": "muon",
          "plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"], "gradient_checkpointing": "offload",
          "fsdp_version": 2, "fsdp_config": {"offload_params": true}, "dp_shard_size": 4, "tensor_parallel_size": 2,
          "activation_offloading": "legacy", "rl": "orpo"})");
  const Node job = patch_tree(parsed.settings);
  EXPECT_EQ(job.at("training").at("attention").as_string(), "flash");
  EXPECT_TRUE(job.at("training").at("fused_loss").as_bool());
  EXPECT_EQ(job.at("training").at("gradient_checkpointing").as_string(), "full");
  EXPECT_EQ(job.at("training").at("preference").at("reference").as_string(), "none");
  EXPECT_EQ(job.at("parallel").at("offload").at("activations").as_string(), "cpu");
  EXPECT_EQ(job.at("parallel").at("offload").at("parameters").as_string(), "cpu");
  EXPECT_EQ(job.at("parallel").at("fsdp").as_string(), "full");
  EXPECT_EQ(job.at("parallel").at("fsdp_version").as_int(), 2);
  EXPECT_EQ(job.at("parallel").at("num_gpus").as_int(), 8);
  EXPECT_EQ(job.at("parallel").at("tensor").as_int(), 2);
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("muon; they are counted as lion's")));
}

TEST(LoraTargetsTest, APatternOverPathsIsReadByTheNamesItsLastPartAllows) {
  const auto targets = [](const char* pattern) {
    std::vector<std::string> names;
    const Node read = lora_targets(Node::string(pattern));
    for (const Node& name : read.items()) names.push_back(name.as_string());
    return names;
  };
  EXPECT_THAT(targets(R"(model.language_model.layers.[\d]+.(mlp|self_attn).(up|q)_proj)"),
              ElementsAre("up_proj", "q_proj"));
  EXPECT_THAT(targets(R"(.*\.(?:q_proj|v_proj)$)"), ElementsAre("q_proj", "v_proj"));
  EXPECT_THAT(targets("all-linear"), ElementsAre("all-linear"));
}

TEST(DeepSpeedFileTest, IsFoundAboveTheFileThatNamesItOrReadByItsName) {
  const TemporaryDirectory folder;
  const fs::path example = folder / "examples" / "llama";
  fs::create_directories(example);
  fs::create_directories(folder / "deepspeed_configs");
  std::ofstream(folder / "deepspeed_configs" / "zero2.json")
      << R"({"zero_optimization": {"stage": 2}})";
  std::ofstream(example / "a.yml") << "base_model: x\ndeepspeed: deepspeed_configs/zero2.json\n";
  std::ofstream(example / "b.yml")
      << "base_model: x\ndeepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json\n";
  const std::vector<ParsedFile> found = read_path((example / "a.yml").string());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(patch_tree(found[1].settings).at("parallel").at("zero_stage").as_int(), 2);
  const std::vector<ParsedFile> guessed = read_path((example / "b.yml").string());
  ASSERT_EQ(guessed.size(), 2U);
  const Node parallel = patch_tree(guessed[1].settings).at("parallel");
  EXPECT_EQ(parallel.at("zero_stage").as_int(), 3);
  EXPECT_EQ(parallel.at("offload").at("parameters").as_string(), "cpu");
  EXPECT_THAT(guessed[1].assumptions, Contains(HasSubstr("taken from its name")));
}

TEST(DeepSpeedFileTest, ANameThatDeniesOffloadingMeansNone) {
  const TemporaryDirectory folder;
  for (const char* name : {"stage3_no_offloading_accelerate.conf", "zero3_wo_offload.json",
                           "zero2_without-offload.json"}) {
    std::ofstream(folder / "a.yml") << "base_model: x\ndeepspeed: " << name << "\n";
    const std::vector<ParsedFile> guessed = read_path((folder / "a.yml").string());
    ASSERT_EQ(guessed.size(), 2U) << name;
    EXPECT_EQ(patch_tree(guessed[1].settings).at("parallel").find("offload"), nullptr) << name;
  }
}

TEST(DeepSpeedFileTest, ABatchOfAllGpusLeavesTheVerdictOpenWithoutTheirNumber) {
  const char* file = R"({"train_batch_size": 512, "zero_optimization": {"stage": 1}})";
  const auto of_gpus = [&](const char* more) {
    JobInput input;
    input.files = merge_files({read_tree(parse_json(file, "ds.json"), FileFormat::kDeepSpeed)});
    input.document = input.files.document;
    input.document.assign("model.preset", Node::string("gpt2"));
    if (*more != '\0') input.document.assign("parallel.num_gpus", Node::integer(64));
    complete(input);
    return input;
  };
  EXPECT_TRUE(of_gpus("").is_open());
  EXPECT_FALSE(of_gpus("64").is_open());
  EXPECT_EQ(of_gpus("64").document.at("training").at("batch_size").as_int(), 8);
}

TEST(StoredBitsTest, AreReadFromTheConfigOfAQuantizedCheckpoint) {
  const auto quantization = [](const std::string& config) {
    const ParsedFile parsed = reading_of_json(
        (R"({"model_type": "llama", "torch_dtype": "float16", "quantization_config": )" + config +
         "}")
            .c_str());
    return patch_tree(parsed.settings).at("training").at("quantization");
  };
  const Node gptq = quantization(R"({"quant_method": "gptq", "bits": 8, "group_size": 64})");
  EXPECT_EQ(gptq.at("method").as_string(), "gptq");
  EXPECT_EQ(gptq.at("bits").as_int(), 8);
  EXPECT_EQ(gptq.at("group_size").as_int(), 64);
  const Node awq = quantization(
      R"({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["visual"]})");
  EXPECT_EQ(awq.at("not_converted").items().front().as_string(), "visual");
  EXPECT_EQ(quantization(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})")
                .at("method")
                .as_string(),
            "fp8");
  EXPECT_EQ(quantization(R"({"quant_method": "mxfp4"})").as_string(), "mxfp4");
  const Node compressed = quantization(
      R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"],
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}})");
  EXPECT_EQ(compressed.at("method").as_string(), "gptq");
  EXPECT_THAT(
      reading_of_json(R"({"model_type": "llama", "quantization_config": {"quant_method": "aqlm"}})")
          .not_modelled,
      Contains(HasSubstr("counted unquantized")));
}

}  // namespace
}  // namespace memfathom
