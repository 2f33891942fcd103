// Commands of diffusers', kohya's and LitGPT's scripts, and of scripts that are nobody's.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "core/lowercase.h"
#include "estimator/command_line/diffusion_pipeline.h"
#include "estimator/command_line/kohya_config.h"
#include "estimator/command_line/reading.h"
#include "estimator/command_line/script_text.h"

namespace memfathom {
namespace {

bool names(const CommandReading& reading, std::string_view part) {
  return reading.launch.program.find(part) != std::string::npos;
}

constexpr auto kDiffusionSpellings = std::to_array<Spelling>({
    {"image_size", "resolution"},
    {"max_resolution", "resolution"},
    {"batch_size", "train_batch_size"},
    {"max_num_frames", "num_frames"},
    {"pretrained_teacher_model", "pretrained_model_name_or_path"},
    {"pretrained_decoder_model_name_or_path", "pretrained_model_name_or_path"},
    {"pretrained_prior_model_name_or_path", "pretrained_model_name_or_path"},
});

// kohya's scripts load a single file; the script's name says the family.
void set_family_by_script(CommandReading& reading) {
  const std::string named = reading.text("pretrained_model_name_or_path");
  const bool is_file = named.empty() || named.ends_with(".safetensors") || named.ends_with(".ckpt");
  if (named.find("stable-diffusion-v1-4") != std::string::npos ||
      named.find("stable-diffusion-inpainting") != std::string::npos) {
    reading.flags.tree.set("pretrained_model_name_or_path", Node::string("sd-1.5"));
    reading.assume(
        fmt::format("{}: {} is taken to have the shape of the preset sd-1.5", reading.file, named));
    return;
  }
  if (!is_file) return;
  const char* family = names(reading, "sdxl")   ? "sdxl"
                       : names(reading, "flux") ? "flux.1-dev"
                       : names(reading, "sd3") || names(reading, "lumina") ||
                               names(reading, "hunyuan") || names(reading, "anima") || named.empty()
                           ? ""
                           : "sd-1.5";
  if (*family == '\0') return;
  reading.flags.tree.set("pretrained_model_name_or_path", Node::string(family));
  reading.assume(
      fmt::format("{}: {} is a single file of weights; by the script's name it is taken "
                  "to have the shape of the preset {}",
                  reading.file, named, family));
}

// "512,512" of kohya: height and width.
void set_resolution(CommandReading& reading) {
  const std::string size = reading.text("resolution");
  const std::size_t comma = size.find(',');
  if (comma == std::string::npos) return;
  reading.flags.tree.set("width", value_of_word(size.substr(0, comma), reading.file));
  reading.flags.tree.set("height", value_of_word(size.substr(comma + 1), reading.file));
  reading.flags.tree.erase("resolution");
}

void set_adapters(CommandReading& reading) {
  const Node* rank = reading.flag("network_dim");
  const bool has_network = rank != nullptr || reading.flag("network_module") != nullptr;
  if (rank == nullptr) rank = reading.flag("rank");
  if (rank == nullptr) rank = reading.flag("lora_rank");
  if (!names(reading, "lora") && !has_network && !reading.is_set("use_lora")) return;
  reading.parsed.set("training.lora.rank",
                     rank != nullptr && rank->is_int() ? *rank : Node::integer(4));
  Node targets = Node::list();  // as the scripts have them
  for (const char* target : {"to_q", "to_k", "to_v", "to_out.0"})
    targets.append(Node::string(target));
  // networks.lora of kohya adapts every linear layer of the transformer blocks.
  for (const char* target : {"proj_in", "proj_out", "ff.net.0.proj", "ff.net.2"})
    if (has_network) targets.append(Node::string(target));
  reading.parsed.set("training.lora.targets", std::move(targets));
  const std::string module = reading.text("network_module");
  if (!module.empty() && module != "networks.lora" && module != "networks.lora_flux")
    reading.leave_open("network_module", "adapters",
                       fmt::format("{}: the adapters of {} are counted as LoRA of the attention",
                                   reading.file, module));
  // Ranks of convolutions, blocks of their own.
  if (const Node* more = reading.flag("network_args"))
    reading.leave_open("network_args", "adapters",
                       fmt::format("{}: network_args {}", reading.file, more->shown()));
  // What stays frozen is cast to the type of the computation.
  const std::string mixed = reading.text("mixed_precision");
  if ((mixed == "fp16" || mixed == "bf16") && !is_known_diffusion_script(reading)) {
    reading.parsed.set("training.precision", Node::string(mixed));
    reading.parsed.set("training.autocast", Node::string(mixed));
    reading.flags.tree.erase("mixed_precision");
  }
  for (const char* key :
       {"network_dim", "network_module", "network_args", "rank", "lora_rank", "use_lora"})
    reading.flags.tree.erase(key);
}

// kohya's flags for what diffusers' scripts say with others.
void translate_kohya(CommandReading& reading) {
  const std::string optimizer = reading.text("optimizer_type");
  if (!optimizer.empty()) {
    const bool is_8bit = optimizer.find("8bit") != std::string::npos;
    const std::string name = lowercase(optimizer.substr(0, optimizer.find("8bit")));
    reading.flags.tree.set("optimizer", Node::string(is_8bit ? name + "_8bit" : name));
    reading.flags.tree.erase("optimizer_type");
  }
  for (const char* key : {"xformers", "mem_eff_attn", "sdpa"}) {
    if (reading.is_set(key))
      reading.set_default("enable_xformers_memory_efficient_attention", Node::boolean(true));
    reading.flags.tree.erase(key);
  }
}

constexpr auto kOwnSpellings = std::to_array<Spelling>({
    {"b", "batch_size"},
    {"bs", "batch_size"},
    {"train_bs", "batch_size"},
    {"batch_size_per_gpu", "batch_size"},
    {"batch_size_per_device", "batch_size"},
    {"batch_size_training", "batch_size"},  // of Llama's recipes
    {"samples_per_gpu", "batch_size"},
    {"model", "model_name"},
    {"model_path", "model_name"},
    {"base_model", "model_name"},
    {"pretrained_model", "model_name"},
    {"model_type", "model_name"},
    {"max_length", "max_seq_length"},
    {"max_len", "max_seq_length"},
    {"max_seq_len", "max_seq_length"},
    {"gpus", "num_gpus"},
    {"world_size", "num_gpus"},
    {"imgsz", "img_size"},
    {"micro_batch", "micro_batch_size"},
});

// What LitGPT's functions have by default (litgpt/finetune/lora.py, full.py, pretrain.py).
void set_litgpt_defaults(CommandReading& reading) {
  const std::string& action = reading.launch.action;
  const bool pretrains = action == "pretrain";
  const std::vector<std::string>& positionals = reading.flags.positionals;
  if (!positionals.empty())
    reading.set_default(pretrains ? "model_name" : "checkpoint_dir",
                        Node::string(positionals.front()));
  if (reading.flag("train.micro_batch_size") == nullptr)
    reading.assume(fmt::format("{}: no train.micro_batch_size: LitGPT's default of {}",
                               reading.file, pretrains ? 4 : 1));
  reading.set_default("train.micro_batch_size", Node::integer(pretrains ? 4 : 1));
  reading.set_default("train.global_batch_size", Node::integer(pretrains ? 512 : 16));
  if (pretrains) reading.set_default("devices", Node::string("auto"));
  const bool is_other_adapter = action.starts_with("finetune_adapter");
  if (action == "finetune" || action == "finetune_lora" || is_other_adapter)
    reading.set_default("lora_r", Node::integer(8));
  if (is_other_adapter)
    reading.leave_open(action, "adapters",
                       fmt::format("{}: LLaMA-Adapter is counted as LoRA of rank 8", reading.file));
}

void leave_configuration_open(const char* key, const std::string& config, CommandReading& reading) {
  reading.leave_open(key, "memory",
                     fmt::format("{}: --{} {}, which was not read, may say any setting",
                                 reading.file, key, config));
}

// Its plain settings stand in for flags; what it computes is not known.
void leave_python_open(const std::string& named, CommandReading& reading) {
  lay_python_settings_under(named, reading);
  reading.leave_open("config", "memory",
                     fmt::format("{}: {} is a program, of which only plain settings are read",
                                 reading.file, named));
}

}  // namespace

void read_diffusion_command(CommandReading& reading) {
  reading.rename(kDiffusionSpellings);
  read_kohya_datasets(reading);
  set_family_by_script(reading);
  set_resolution(reading);
  set_adapters(reading);
  translate_kohya(reading);
  set_diffusion_defaults(reading);
  const bool is_whole = set_diffusion_modules(reading);
  if (is_whole) reading.flags.tree.erase("pretrained_model_name_or_path");
  if (names(reading, "controlnet"))
    reading.leave_open("controlnet", "memory",
                       fmt::format("{}: a ControlNet is trained in addition to the frozen "
                                   "denoiser; the denoiser is counted as trained",
                                   reading.file));
  read_as(FileFormat::kTrainYaml, reading);
  std::error_code ignored;
  if (!is_whole && !std::filesystem::is_directory(reading.parsed.base_model, ignored))
    reading.leave_open("pretrained_model_name_or_path", "memory",
                       fmt::format("{}: the autoencoder and the text encoders, which only a "
                                   "pipeline's folder describes",
                                   reading.file));
}

void read_litgpt_command(CommandReading& reading) {
  const std::string config = reading.text("config");
  reading.flags.tree.erase("config");
  if (!config.empty()) {
    read_with_file(config, reading);
  } else {
    set_litgpt_defaults(reading);
    read_as(FileFormat::kLitgpt, reading);
  }
}

void read_own_command(CommandReading& reading) {
  for (const std::string& positional : reading.flags.positionals) {
    const bool is_configuration = positional.ends_with(".yaml") || positional.ends_with(".yml") ||
                                  positional.ends_with(".json") || positional.ends_with(".toml");
    if (is_configuration && find_named_file(reading, positional)) {
      read_with_file(positional, reading);
      return;
    }
  }
  for (const char* key : {"config", "config_file", "job.config_file", "cfg", "c"}) {
    const std::string config = reading.text(key);
    if (config.empty()) continue;
    reading.flags.tree.erase(key);
    if (find_named_file(reading, config)) {
      read_with_file(config, reading);
      return;
    }
    leave_configuration_open(key, config, reading);
  }
  // mmdetection's and nanoGPT's: a Python file of settings.
  for (const std::string& positional : reading.flags.positionals) {
    if (positional.ends_with(".py")) leave_python_open(positional, reading);
  }
  // Hydra's, which compose a configuration of many files.
  for (const char* key : {"config_name", "config_path"}) {
    const std::string config = reading.text(key);
    if (!config.empty()) leave_configuration_open(key, config, reading);
  }
  reading.rename(kOwnSpellings);
  read_as(FileFormat::kTrainYaml, reading);
}

}  // namespace memfathom
