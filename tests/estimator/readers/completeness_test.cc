// A new format, optimizer or quantization is known to the readers and their page. The switches have
// no default: a new value fails to compile here until it has a sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "estimator/readers/formats.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/optim/optimizer.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FormatSample {
  const char* yaml;  // the least by which the format is recognised
  const char* row;   // the start of its row in docs/your-files.md
};

FormatSample sample_of(FileFormat format) {
  switch (format) {
    case FileFormat::kJob: return {"model: {preset: gpt2}", "| a job "};
    case FileFormat::kModelConfig: return {"model_type: llama", "| a model folder, config.json |"};
    case FileFormat::kAdapter:
      return {"{peft_type: LORA, r: 8}", "| adapter_config.json of PEFT |"};
    case FileFormat::kTrainingArguments:
      return {"per_device_train_batch_size: 2", "| TrainingArguments "};
    case FileFormat::kDeepSpeed: return {"zero_optimization: {stage: 2}", "| DeepSpeed |"};
    case FileFormat::kAccelerate: return {"distributed_type: FSDP", "| accelerate |"};
    case FileFormat::kAxolotl: return {"base_model: acme/small-1b", "| axolotl |"};
    case FileFormat::kLlamaFactory: return {"finetuning_type: lora", "| LLaMA-Factory |"};
    case FileFormat::kTorchtune:
      return {"model: {_component_: torchtune.models.llama3.llama3_8b}", "| torchtune |"};
    case FileFormat::kTorchtitan:
      return {"{model: {name: llama3, flavor: 8B}, training: {seq_len: 8}}", "| torchtitan |"};
    case FileFormat::kLitgpt:
      return {"{model_name: pythia-70m, train: {global_batch_size: 8, micro_batch_size: 1}}",
              "| LitGPT |"};
    case FileFormat::kMsSwift: return {"{model: acme/small-1b, tuner_type: lora}", "| ms-swift |"};
    case FileFormat::kVerl:
      return {"actor_rollout_ref: {model: {path: acme/small-1b}}", "| verl |"};
    case FileFormat::kNemoAutomodel:
      return {"{step_scheduler: {local_batch_size: 1}, model: {_target_: x}}",
              "| NeMo Automodel |"};
    case FileFormat::kNemoRl: return {"policy: {model_name: acme/small-1b}", "| NeMo RL |"};
    case FileFormat::kTrainYaml: return {"batch_size: 4", "| a script's own YAML "};
    case FileFormat::kCommandLine: return {"", "| a shell script |"};  // no file of YAML or JSON
  }
  return {};
}

TEST(CompletenessTest, EveryFormatIsRecognisedAndHasARowOnThePage) {
  std::ifstream file(project_directory() / "docs" / "your-files.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [format, name] : kEnumNames<FileFormat>) {
    const FormatSample sample = sample_of(format);
    if (*sample.yaml != '\0') {
      EXPECT_EQ(detect_format(parse_yaml(sample.yaml, "x.yaml")), format) << name;
    }
    EXPECT_THAT(page, HasSubstr(std::string("\n") + sample.row)) << name;
  }
}

TEST(CompletenessTest, EveryOptimizerIsReadFromAFileThatNamesIt) {
  // The Trainer has no such names; they are counted as AdamW's, and the answer says so.
  static constexpr std::array kNotInFiles{OptimizerName::kNone, OptimizerName::kSgdMomentum};
  for (const auto& [optimizer, name] : kEnumNames<OptimizerName>) {
    const ParsedFile parsed = parse_config(
        ("{per_device_train_batch_size: 1, optim: " + std::string(name) + "}").c_str());
    const bool is_known = std::ranges::find(kNotInFiles, optimizer) == kNotInFiles.end();
    EXPECT_EQ(value_in(parsed, "training.optimizer") == name, is_known) << name;
    EXPECT_EQ(parsed.not_modelled.empty(), is_known) << name;
  }
}

// The quantization_config of a checkpoint; empty where there is nothing to store.
const char* stored_config(Quantization quantization) {
  switch (quantization) {
    case Quantization::kNone: return "";
    case Quantization::kInt8: return "load_in_8bit: true";
    case Quantization::kNf4: return "load_in_4bit: true";
    case Quantization::kNf4Double: return "load_in_4bit: true, bnb_4bit_use_double_quant: true";
    case Quantization::kGptq: return "quant_method: gptq, bits: 4";
    case Quantization::kAwq: return "quant_method: awq, bits: 4";
    case Quantization::kFp8: return "quant_method: fp8";
    case Quantization::kMxfp4: return "quant_method: mxfp4";
  }
  return "";
}

TEST(CompletenessTest, EveryQuantizationIsReadFromACheckpoint) {
  for (const auto& [quantization, name] : kEnumNames<Quantization>) {
    const std::string config = stored_config(quantization);
    if (config.empty()) continue;
    const ParsedFile parsed =
        parse_config(("{model_type: llama, quantization_config: {" + config + "}}").c_str());
    const std::string method = value_in(parsed, "training.quantization.method");
    EXPECT_EQ(method.empty() ? value_in(parsed, "training.quantization") : method, name);
    EXPECT_THAT(parsed.not_modelled, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace memfathom
