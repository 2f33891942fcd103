// How a change is made without a file: in the training script or in its environment.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "estimator/readers/write_back.h"

namespace memfathom {
namespace {

// The change that has one form whatever its value: "{}" is the value.
struct SettingFormat {
  std::string_view key;
  std::string_view words;
};

constexpr auto kForms = std::to_array<SettingFormat>({
    {"allocator.options", "PYTORCH_CUDA_ALLOC_CONF={}"},
    {"training.batch_size", "batch_size={} of the DataLoader"},
    {"training.gradient_accumulation_steps", "an optimizer step after every {} backward passes"},
    {"training.sequence_length", "samples of at most {} tokens (the tokenizer's max_length)"},
    {"training.evaluation.batch_size", "batch_size={} of the DataLoader for evaluation"},
    {"training.lora.rank", "LoraConfig(r={}) of PEFT"},
    {"training.lora.targets", "LoraConfig(target_modules={}) of PEFT"},
    {"parallel.zero_stage", "DeepSpeed with zero_optimization.stage {}"},
    {"parallel.fsdp", "FSDP ({} sharding) with a unit for each block"},
    {"parallel.num_gpus", "a run on {} GPUs"},
});

// The change to one value that has words of its own.
struct NamedSetting {
  std::string_view key;
  std::string_view value;
  std::string_view words;
};

constexpr auto kNamedSettings = std::to_array<NamedSetting>({
    {"training.quantization", "int8", "BitsAndBytesConfig(load_in_8bit=True)"},
    {"training.quantization", "nf4",
     "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
     "bnb_4bit_use_double_quant=False)"},
    {"training.quantization", "nf4-double",
     "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
     "bnb_4bit_use_double_quant=True)"},
    {"training.precision", "amp-bf16", "torch.autocast(\"cuda\", torch.bfloat16)"},
    {"training.precision", "amp-fp16", "torch.autocast(\"cuda\", torch.float16)"},
    {"training.precision", "bf16", "torch_dtype=torch.bfloat16 where the model is loaded"},
    {"training.precision", "fp16", "torch_dtype=torch.float16 where the model is loaded"},
    {"training.precision", "fp32", "torch_dtype=torch.float32 where the model is loaded"},
    {"training.optimizer", "adamw-8bit", "bitsandbytes.optim.AdamW8bit for the optimizer"},
    {"training.optimizer", "adafactor", "transformers' Adafactor for the optimizer"},
    {"training.fused_loss", "true", "a fused cross entropy, such as Liger's, in the script"},
    {"training.gradient_checkpointing", "full", "model.gradient_checkpointing_enable()"},
    {"training.preference.reference", "precomputed",
     "DPOConfig(precompute_ref_log_probs=True) and no ref_model for DPOTrainer"},
    {"training.preference.reference", "disabled-adapter",
     "no ref_model for DPOTrainer, beside its peft_config"},
    {"training.grad_scaler", "true", "torch.amp.GradScaler(\"cuda\") around the loss"},
    {"parallel.offload.parameters", "cpu",
     "device_map=\"auto\" with a max_memory where the model is loaded (accelerate's offload)"},
    {"parallel.offload.optimizer", "cpu",
     "an optimizer whose states and step are on the host, such as DeepSpeedCPUAdam"},
    {"parallel.offload.activations", "cpu",
     "torch.autograd.graph.save_on_cpu(pin_memory=True) around the forward pass"},
});

// As Python writes it, but for the quotes of a single word.
std::string value_text(const Node& value) {
  if (!value.is_list()) return value.is_string() ? value.as_string() : value.shown();
  std::string words;
  for (const Node& item : value.items())
    words += fmt::format("{}\"{}\"", words.empty() ? "" : ", ", value_text(item));
  return "[" + words + "]";
}

}  // namespace

std::string manual_setting(const KeyChange& change) {
  const std::string value = value_text(change.value);
  if (change.key == "training.attention")
    return fmt::format("attn_implementation=\"{}\" where the model is loaded",
                       value == "flash" ? "flash_attention_2" : "sdpa");
  for (const NamedSetting& named : kNamedSettings) {
    if (change.key == named.key && value == named.value) return std::string(named.words);
  }
  for (const SettingFormat& form : kForms) {
    if (change.key == form.key) return fmt::format(fmt::runtime(form.words), value);
  }
  return fmt::format("{} = {}", change.key, value);
}

}  // namespace memfathom
