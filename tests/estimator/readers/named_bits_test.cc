#include "estimator/readers/named_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/document_path.h"
#include "estimator/session/job_input.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// "awq 4" of a map, "nf4" of a word, "" of nothing, "?" of a form that is not counted.
std::string bits(const std::string& name) {
  const NamedBits named = bits_in_name(name);
  if (named.quantization.is_null()) return named.form.empty() ? "" : "?";
  if (named.quantization.is_string()) return named.quantization.as_string();
  return named.quantization.at("method").as_string() + " " + named.quantization.at("bits").shown();
}

TEST(NamedBitsTest, FormsAreKnownByTheirNames) {
  EXPECT_EQ(bits("Qwen/Qwen2.5-7B-Instruct-AWQ"), "awq 4");
  EXPECT_EQ(bits("casperhansen/llama-3-70b-instruct-awq"), "awq 4");
  EXPECT_EQ(bits("TheBloke/Llama-2-70B-Chat-GPTQ"), "gptq 4");
  EXPECT_EQ(bits("Qwen/Qwen2.5-14B-Instruct-GPTQ-Int8"), "gptq 8");
  EXPECT_EQ(bits("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16"), "gptq 4");
  EXPECT_EQ(bits("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8-dynamic"), "fp8");
  EXPECT_EQ(bits("RedHatAI/Llama-3.1-8B-quantized.w8a8"), "fp8");
  EXPECT_EQ(bits("unsloth/Meta-Llama-3.1-8B-bnb-4bit"), "nf4-double");
  EXPECT_EQ(bits("acme/Llama-3-8B-bnb-4bit"), "nf4");
  EXPECT_EQ(bits("hugging-quants/Meta-Llama-3.1-70B-BNB-NF4-BF16"), "nf4");
  EXPECT_EQ(bits("acme/Llama-3-8B-8bit"), "int8");
}

TEST(NamedBitsTest, WhatIsNotCountedIsSaid) {
  for (const char* name :
       {"bartowski/Llama-3.2-3B-Instruct-GGUF", "acme/Llama-3-8B-Q4_K_M", "acme/Llama-3-8B-IQ3_XS",
        "mlx-community/Mistral-7B-Instruct-v0.3-4bit", "ISTA-DASLab/Llama-3-8B-AQLM-2Bit-1x16",
        "THUDM/chatglm2-6b-int4", "nvidia/Llama-3.1-8B-Instruct-NVFP4", "x/Llama-3-8B-exl2-3bit"})
    EXPECT_EQ(bits(name), "?") << name;
}

TEST(NamedBitsTest, OrdinaryNamesSayNothing) {
  for (const char* name :
       {"meta-llama/Llama-2-70b-chat-hf", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1",
        "openai/gpt-oss-20b", "google/gemma-2-9b-it", "facebook/opt-125m", "microsoft/phi-4",
        "Qwen/QwQ-32B", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "acme/model-q-4b", ""})
    EXPECT_EQ(bits(name), "") << name;
}

JobInput job_of(const std::string& name, const std::string& training) {
  return complete_job(
      parse_yaml("{model: {preset: " + name + "}, training: {sequence_length: 64" + training + "}}",
                 "j.yaml"));
}

std::string quantization(const JobInput& input) {
  const Node* value = value_at(input.document, "training.quantization");
  if (value == nullptr) return "";
  return value->is_map() ? value->at("method").as_string() : value->as_string();
}

TEST(NamedBitsTest, TheNameCountsWhereTheWeightsStayAsTheyAre) {
  const JobInput inference = job_of("Qwen/Qwen2.5-7B-Instruct-AWQ", ", mode: inference");
  EXPECT_EQ(quantization(inference), "awq");
  EXPECT_EQ(text_at(inference.document, "training.precision"), "bf16");
  EXPECT_THAT(inference.files.assumptions, Contains(HasSubstr("as AWQ stores them")));
  EXPECT_FALSE(inference.is_open());
  EXPECT_EQ(quantization(job_of("unsloth/Llama-3.2-1B-bnb-4bit", ", lora: {rank: 8}")),
            "nf4-double");
}

TEST(NamedBitsTest, TheJobsOwnWordWins) {
  EXPECT_EQ(
      quantization(job_of("acme/Llama-3.2-1B-bnb-4bit", ", mode: inference, quantization: none")),
      "none");
}

TEST(NamedBitsTest, FullTrainingOfAQuantizedCopyIsLeftOpen) {
  const JobInput full = job_of("acme/Llama-3.2-1B-AWQ", "");
  EXPECT_EQ(quantization(full), "");
  EXPECT_TRUE(full.is_open());
  EXPECT_TRUE(job_of("acme/Llama-3.2-1B-GGUF", ", mode: inference").is_open());
}

}  // namespace
}  // namespace memfathom
