// Every flag of a command of every program: a misspelled one is named, a changed value changes the
// reading, or the flag is on the list of harmless ones; added settings of memory are never ignored.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/parse_number.h"
#include "core/yaml_text.h"
#include "estimator/command_line/command_line.h"
#include "estimator/readers/unread_keys.h"
#include "tests/estimator/telling_keys.h"

namespace memfathom {
namespace {

struct Command {
  const char* name;
  const char* words;
};

constexpr Command kCommands[] = {
    {"Trainer",
     "torchrun --nproc_per_node 2 run_clm.py --do_train --model_name_or_path Qwen/Qwen2.5-7B "
     "--per_device_train_batch_size 2 --block_size 1024 --bf16 True --gradient_checkpointing True "
     "--gradient_accumulation_steps 4 --optim adamw_torch --attn_implementation sdpa "
     "--output_dir out --learning_rate 1e-5 --save_steps 100 --logging_steps 5"},
    {"TRL",
     "trl sft --model_name_or_path Qwen/Qwen2.5-7B --dtype bfloat16 --use_peft True --lora_r 8 "
     "--load_in_4bit True --max_length 512 --packing True --gradient_accumulation_steps 4 "
     "--dataset_name a/b --report_to none"},
    {"DeepSpeed-Chat",
     "deepspeed --num_gpus 4 main.py --model_name_or_path facebook/opt-1.3b "
     "--per_device_train_batch_size 4 --max_seq_len 512 --zero_stage 2 --offload True "
     "--lora_dim 128 --gradient_checkpointing True --num_train_epochs 1"},
    {"ms-swift",
     "swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --lora_rank 8 "
     "--torch_dtype bfloat16 --per_device_train_batch_size 1 --max_length 2048 "
     "--gradient_accumulation_steps 16 --dataset a --output_dir out"},
    {"LLaMA-Factory",
     "llamafactory-cli train --stage sft --model_name_or_path Qwen/Qwen2.5-7B "
     "--finetuning_type lora --lora_rank 8 --lora_target all --cutoff_len 2048 "
     "--per_device_train_batch_size 1 --bf16 True --template qwen --dataset a"},
    {"LitGPT",
     "litgpt finetune_lora checkpoints/meta-llama/Llama-2-7b-hf --lora_r 8 --precision bf16-true "
     "--train.micro_batch_size 2 --train.max_seq_length 512 --devices 2 --out_dir out"},
    {"Megatron-LM",
     "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
     "--ffn-hidden-size 14336 --num-attention-heads 32 --num-query-groups 8 "
     "--group-query-attention --swiglu --seq-length 4096 --micro-batch-size 1 "
     "--tensor-model-parallel-size 2 --recompute-granularity full --vocab-size 32000 --lr 1e-4"},
    {"OpenRLHF",
     "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --micro_train_batch_size 2 "
     "--pretrain meta-llama/Meta-Llama-3-8B --zero_stage 3 --lora_rank 8 --save_path out "
     "--adam_offload True --gradient_checkpointing True"},
    {"diffusers",
     "accelerate launch --mixed_precision fp16 train_text_to_image.py "
     "--pretrained_model_name_or_path stable-diffusion-v1-5/stable-diffusion-v1-5 "
     "--resolution 512 --train_batch_size 2 --gradient_checkpointing True --max_train_steps 10"},
    {"kohya",
     "accelerate launch sdxl_train_network.py --pretrained_model_name_or_path model.safetensors "
     "--network_module networks.lora --network_dim 16 --resolution 1024,1024 "
     "--train_batch_size 1 --optimizer_type AdamW8bit --gradient_checkpointing True"},
    {"own", "python train.py --arch resnet50 --batch_size 64 --image_size 224 --amp True --lr 0.1"},
};

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  Words words(1);
  for (const char c : text) {
    if (c != ' ') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

std::string reading_of(const Words& words) {
  try {
    std::string text;
    for (const ParsedFile& parsed : read_command_line(words)) {
      text += fmt::format("model {}\n", parsed.base_model);
      for (const KeyChange& change : parsed.settings)
        text += fmt::format("{} {}\n", change.key, to_yaml(change.value));
      for (const std::string& sentence : parsed.assumptions) text += sentence + "\n";
      for (const std::string& sentence : parsed.not_modelled) text += sentence + "\n";
      for (const UnreadKey& key : parsed.unread)
        text += fmt::format("unread {} {}\n", key.key, key.concerns);
    }
    return text;
  } catch (const Error& error) {
    return fmt::format("refused: {}", error.what());
  }
}

std::string key_of(const std::string& flag) {
  std::string key = flag.substr(2);
  for (char& c : key) c = c == '-' ? '_' : c;
  return key;
}

// Flags from the script on; those of the launcher before it have their own test.
std::size_t first_flag(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py") || words[i].starts_with("openrlhf.")) return i + 1;
  }
  return 2;
}

bool is_harmless(const std::string& key) {
  if (harmless_reason(FileFormat::kCommandLine, key)) return true;
  return harmless_reason(FileFormat::kTrainingArguments, key).has_value() ||
         harmless_reason(FileFormat::kLlamaFactory, key).has_value() ||
         harmless_reason(FileFormat::kTrainYaml, key).has_value();
}

std::string other_value(const std::string& value) {
  if (value == "True") return "False";
  if (const std::optional<int> number = parse_number<int>(value))
    return fmt::format("{}", 2 * *number + 1);
  return "zzz";
}

TEST(GeneratedFlagsTest, EveryMisspelledFlagIsNamedOrHarmless) {
  int tried = 0;
  for (const Command& command : kCommands) {
    const Words words = split(command.words);
    for (std::size_t i = first_flag(words); i < words.size(); ++i) {
      if (!words[i].starts_with("--")) continue;
      Words changed = words;
      changed[i] = "--zz" + words[i].substr(2);
      const std::string reading = reading_of(changed);
      EXPECT_TRUE(reading.find("unread " + key_of(changed[i]) + " ") != std::string::npos ||
                  reading.starts_with("refused: ") || is_harmless(key_of(changed[i])))
          << command.name << ": " << changed[i] << "\n"
          << reading;
      ++tried;
    }
  }
  EXPECT_GT(tried, 70);
}

TEST(GeneratedFlagsTest, EveryChangedValueChangesTheReadingOrIsHarmless) {
  for (const Command& command : kCommands) {
    const Words words = split(command.words);
    const std::string before = reading_of(words);
    ASSERT_FALSE(before.starts_with("refused: ")) << command.name << ": " << before;
    for (std::size_t i = first_flag(words); i + 1 < words.size(); ++i) {
      if (!words[i].starts_with("--") || words[i + 1].starts_with("--")) continue;
      Words changed = words;
      changed[i + 1] = other_value(words[i + 1]);
      EXPECT_TRUE(reading_of(changed) != before || is_harmless(key_of(words[i])) ||
                  before.find("unread " + key_of(words[i]) + " ") != std::string::npos)
          << command.name << ": " << words[i] << " " << changed[i + 1] << " changes nothing";
    }
  }
}

TEST(GeneratedFlagsTest, AnAddedSettingOfMemoryLeavesTheVerdictOpen) {
  for (const Command& command : kCommands) {
    for (const std::string_view telling : kTellingKeys) {
      Words words = split(command.words);
      words.push_back("--" + std::string(telling));
      words.emplace_back("3");
      const std::string reading = reading_of(words);
      const std::string mark = "unread " + std::string(telling) + " ";
      const std::size_t at = reading.find(mark);
      EXPECT_TRUE(reading.starts_with("refused: ") ||
                  (at != std::string::npos && std::isalpha(reading[at + mark.size()]) != 0))
          << command.name << ": --" << telling << "\n"
          << reading;
    }
  }
}

}  // namespace
}  // namespace memfathom
