#include "estimator/command_line/diffusion_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/lowercase.h"
#include "estimator/command_line/purpose.h"
#include "estimator/command_line/reading.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

enum class Texts { kStay, kBeforeTraining, kUnlessCaptioned };
enum class Vae { kComputeType, kFloat32, kBeforeTraining };

// examples/text_to_image and examples/dreambooth of diffusers.
struct Script {
  std::string_view name;
  bool is_lora;
  Texts texts;
  Vae vae;
  int batch;
  int resolution;
};

constexpr auto kScripts = std::to_array<Script>({
    {"train_text_to_image.py", false, Texts::kStay, Vae::kComputeType, 16, 512},
    {"train_text_to_image_lora.py", true, Texts::kStay, Vae::kComputeType, 16, 512},
    {"train_text_to_image_sdxl.py", false, Texts::kBeforeTraining, Vae::kBeforeTraining, 16, 1024},
    {"train_text_to_image_lora_sdxl.py", true, Texts::kStay, Vae::kFloat32, 16, 1024},
    {"train_dreambooth.py", false, Texts::kStay, Vae::kComputeType, 4, 512},
    {"train_dreambooth_lora.py", true, Texts::kStay, Vae::kComputeType, 4, 512},
    {"train_dreambooth_lora_sdxl.py", true, Texts::kUnlessCaptioned, Vae::kFloat32, 4, 1024},
    {"train_dreambooth_flux.py", false, Texts::kUnlessCaptioned, Vae::kComputeType, 4, 512},
    {"train_dreambooth_lora_flux.py", true, Texts::kUnlessCaptioned, Vae::kComputeType, 4, 512},
});

enum class Pipeline { kStableDiffusion1, kStableDiffusionXl, kFlux };

// PEFT's examples (boft_dreambooth/train_dreambooth.py) have the names of diffusers'.
bool asks_for_adapters(const CommandReading& reading) {
  const std::string& program = reading.launch.program;
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  const bool in_folder =
      !folder.empty() && !adapter_in_name(folder.substr(0, folder.size() - 1)).empty();
  const std::vector<Node>& flags = reading.flags.tree.entries();
  return in_folder || !reading.flags.positionals.empty() ||
         std::any_of(flags.begin(), flags.end(), [](const Node& flag) {
           return concern_of(flag.key(), Node::string("set")) == "adapters";
         });
}

const Script* find_script(const CommandReading& reading) {
  const std::string& program = reading.launch.program;
  const std::string_view name = std::string_view(program).substr(program.rfind('/') + 1);
  const auto found = std::find_if(kScripts.begin(), kScripts.end(),
                                  [&](const Script& script) { return script.name == name; });
  if (found == kScripts.end() || (!found->is_lora && asks_for_adapters(reading))) return nullptr;
  return &*found;
}

std::optional<Pipeline> pipeline_of(const std::string& model) {
  const std::string name = lowercase(model);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("flux.1-dev") || has("flux.1-schnell")) return Pipeline::kFlux;
  if (has("sdxl") || has("stable-diffusion-xl")) return Pipeline::kStableDiffusionXl;
  if (has("stable-diffusion-v1-") || has("sd-1.5")) return Pipeline::kStableDiffusion1;
  return std::nullopt;
}

// The type that accelerate computes in: the script's flag, the launcher's, or its file's.
std::string mixed_precision(const CommandReading& reading) {
  std::string name = reading.text("mixed_precision");
  if (!name.empty()) return name;
  const Node launcher = read_flags(reading.launch.launcher_arguments, reading.file).tree;
  name = text_at(launcher, "mixed_precision");
  if (!name.empty()) return name;
  const std::string config = text_at(launcher, "config_file");
  if (config.empty()) return "no";
  const std::optional<Node> tree = load_named_file(reading, config);
  return tree && tree->is_map() ? text_at(*tree, "mixed_precision", "no") : "";
}

Node frozen_module(const char* name, const char* precision) {
  Node module = Node::map();
  module.set("name", Node::string(name));
  module.set("train", Node::string("frozen"));
  module.set("no_grad", Node::boolean(true));
  module.set("precision", Node::string(precision));
  return module;
}

Node text_encoder(const char* name, const char* preset, int tokens, const char* precision) {
  Node module = frozen_module(name, precision);
  module.assign("model.preset", Node::string(preset));
  module.set("sequence_length", Node::integer(tokens));
  return module;
}

// OpenCLIP's bigG, SDXL's second text encoder (its text_encoder_2/config.json).
Node big_text_encoder(const char* precision) {
  Node module = frozen_module("text_encoder_2", precision);
  const auto set = [&](const char* key, int value) {
    module.assign(std::string("model.config.") + key, Node::integer(value));
  };
  module.assign("model.config.model_type", Node::string("clip_text_model"));
  Node architectures = Node::list();
  architectures.append(Node::string("CLIPTextModelWithProjection"));
  module.assign("model.config.architectures", std::move(architectures));
  module.assign("model.config.hidden_act", Node::string("gelu"));
  set("hidden_size", 1280);
  set("intermediate_size", 5120);
  set("num_hidden_layers", 32);
  set("num_attention_heads", 20);
  set("projection_dim", 1280);
  set("max_position_embeddings", 77);
  set("vocab_size", 49408);
  module.set("sequence_length", Node::integer(77));
  return module;
}

void add_text_encoders(Pipeline pipeline, int long_text, const char* precision, Node& modules) {
  modules.append(text_encoder("text_encoder", "clip-text-large", 77, precision));
  if (pipeline == Pipeline::kStableDiffusionXl) modules.append(big_text_encoder(precision));
  if (pipeline == Pipeline::kFlux)
    modules.append(text_encoder("text_encoder_2", "t5-v1.1-xxl-encoder", long_text, precision));
}

void add_autoencoder(Pipeline pipeline, const char* precision, Node& modules) {
  Node module = frozen_module("vae", precision);
  module.assign("model.preset",
                Node::string(pipeline == Pipeline::kFlux                ? "flux-vae"
                             : pipeline == Pipeline::kStableDiffusionXl ? "sdxl-vae"
                                                                        : "sd-vae"));
  module.assign("model.part", Node::string("encoder"));
  modules.append(std::move(module));
}

Node denoiser(Pipeline pipeline, const std::string& model, bool is_lora) {
  const bool is_schnell = lowercase(model).find("schnell") != std::string::npos;
  Node module = Node::map();
  module.set("name", Node::string(pipeline == Pipeline::kFlux ? "transformer" : "unet"));
  module.assign("model.preset", Node::string(pipeline == Pipeline::kStableDiffusion1    ? "sd-1.5"
                                             : pipeline == Pipeline::kStableDiffusionXl ? "sdxl"
                                             : is_schnell ? "flux.1-schnell"
                                                          : "flux.1-dev"));
  module.set("train", Node::string(is_lora ? "lora" : "full"));
  return module;
}

bool texts_stay(const Script& script, Pipeline pipeline, CommandReading& reading) {
  if (script.texts == Texts::kStay) return true;
  if (script.texts == Texts::kBeforeTraining) return false;
  if (reading.flag("caption_column") != nullptr) return true;
  // Adapters of Flux: the encoders that lie there before the first step may be the peak.
  if (pipeline != Pipeline::kFlux || !script.is_lora) return false;
  reading.leave_open("pretrained_model_name_or_path", "memory",
                     fmt::format("{}: the text encoders leave the GPU before the first step; they "
                                 "are counted in it, since they and the weights may be the peak",
                                 reading.file));
  return true;
}

// The averaged copy of the denoiser, in fp32 whatever the others are.
void add_average(Pipeline pipeline, const std::string& model, CommandReading& reading,
                 Node& modules) {
  const bool is_kept = reading.is_set("use_ema") && !reading.is_set("offload_ema");
  reading.flags.tree.erase("use_ema");
  reading.flags.tree.erase("offload_ema");
  if (!is_kept) return;
  Node module = denoiser(pipeline, model, false);
  module.set("name", Node::string("ema"));
  module.set("train", Node::string("frozen"));
  module.set("no_grad", Node::boolean(true));
  module.set("precision", Node::string("fp32"));
  modules.append(std::move(module));
  reading.assume(fmt::format("{}: use_ema: the averaged copy is counted as frozen weights in fp32",
                             reading.file));
}

// train_dreambooth.py trains the text encoder of Stable Diffusion 1 whole, beside the denoiser.
void train_text_encoder(const Script& script, Pipeline pipeline, CommandReading& reading,
                        Node& modules) {
  if (script.is_lora || pipeline != Pipeline::kStableDiffusion1 || modules.items().empty() ||
      !reading.is_set("train_text_encoder"))
    return;
  reading.flags.tree.erase("train_text_encoder");
  Node module = modules.items().front();
  module.set("train", Node::string("full"));
  module.set("no_grad", Node::boolean(false));
  module.erase("precision");
  modules = Node::list();
  modules.append(std::move(module));
}

// Images that are made now and then: their decoder may take more than a small step.
void note_validation(const Script& script, CommandReading& reading) {
  bool validates = false;
  for (const char* key : {"validation_prompt", "validation_prompts"})
    validates = validates || reading.flag(key) != nullptr;
  if (!validates) return;
  const Node* resolution = reading.flag("resolution");
  const bool is_large = resolution != nullptr && resolution->is_int() &&
                        resolution->as_int() >= 768 && reading.is_set("gradient_checkpointing");
  const std::string sentence =
      fmt::format("{}: the images of {}'s validation are not counted", reading.file, script.name);
  if (is_large) {
    reading.leave_open("validation_prompt", "memory", sentence);
  } else {
    reading.assume(sentence + ": a step takes more than their decoder");
  }
}

}  // namespace

bool is_known_diffusion_script(const CommandReading& reading) {
  return find_script(reading) != nullptr;
}

void set_diffusion_defaults(CommandReading& reading) {
  const Script* script = find_script(reading);
  if (script == nullptr) return;
  if (reading.flag("train_batch_size") == nullptr)
    reading.assume(fmt::format("{}: no train_batch_size: {}'s default of {}", reading.file,
                               script->name, script->batch));
  reading.set_default("train_batch_size", Node::integer(script->batch));
  reading.set_default("resolution", Node::integer(script->resolution));
  const bool has_class_images = reading.is_set("with_prior_preservation");
  reading.flags.tree.erase("with_prior_preservation");
  if (!has_class_images) return;
  const Node* batch = reading.flag("train_batch_size");
  if (!batch->is_int()) return;
  const std::int64_t images = batch->as_int(1, 1 << 24);
  reading.flags.tree.set("train_batch_size", Node::integer(2 * images));
  reading.assume(
      fmt::format("{}: with_prior_preservation: a step sees {} images and as many of "
                  "the class",
                  reading.file, images));
}

bool set_diffusion_modules(CommandReading& reading) {
  const Script* script = find_script(reading);
  const std::string model = reading.text("pretrained_model_name_or_path");
  const std::optional<Pipeline> pipeline = pipeline_of(model);
  if (script == nullptr || !pipeline || find_named_file(reading, model)) return false;
  const std::string mixed = mixed_precision(reading);
  if (mixed != "no" && mixed != "fp16" && mixed != "bf16") return false;
  const char* compute = mixed == "no" ? "fp32" : mixed == "fp16" ? "fp16" : "bf16";

  Node modules = Node::list();
  const Node* tokens = reading.flag("max_sequence_length");
  const int long_text =
      tokens != nullptr && tokens->is_int() ? static_cast<int>(tokens->as_int(1, 4096)) : 512;
  if (texts_stay(*script, *pipeline, reading))
    add_text_encoders(*pipeline, long_text, compute, modules);
  train_text_encoder(*script, *pipeline, reading, modules);
  const bool has_own_vae = reading.flag("pretrained_vae_model_name_or_path") != nullptr;
  const bool is_cached = script->vae == Vae::kBeforeTraining || reading.is_set("cache_latents");
  if (!is_cached)
    add_autoencoder(*pipeline, script->vae == Vae::kFloat32 && !has_own_vae ? "fp32" : compute,
                    modules);
  if (!script->is_lora) add_average(*pipeline, model, reading, modules);
  modules.append(denoiser(*pipeline, model, script->is_lora));
  reading.parsed.set("model.modules", std::move(modules));
  const std::string trained = mixed == "no" ? "fp32" : script->is_lora ? mixed : "amp-" + mixed;
  reading.parsed.set("training.precision", Node::string(trained));
  if (mixed == "fp16") reading.parsed.set("training.grad_scaler", Node::boolean(true));
  for (const char* key : {"mixed_precision", "max_sequence_length", "cache_latents",
                          "pretrained_vae_model_name_or_path", "caption_column"})
    reading.flags.tree.erase(key);
  reading.assume(
      fmt::format("{}: assuming that {} has the shapes of {}; the other models on the GPU and "
                  "their types are those of diffusers' {}",
                  reading.file, model,
                  *pipeline == Pipeline::kFlux                ? "Flux.1"
                  : *pipeline == Pipeline::kStableDiffusionXl ? "Stable Diffusion XL"
                                                              : "Stable Diffusion 1.5",
                  script->name));
  note_validation(*script, reading);
  return true;
}

}  // namespace memfathom
