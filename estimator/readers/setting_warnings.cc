#include "estimator/readers/setting_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/document_path.h"
#include "estimator/job/target_capability.h"
#include "estimator/models/registry.h"

namespace memfathom {
namespace {

const ModelFamily* family_of(const ModelSpec& model) {
  if (const NetworkConfig* network = model.config()) return find_family(network->config);
  if (const PresetNetwork* preset = model.preset()) return find_family(preset->config);
  return nullptr;
}

bool begins_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool reads_tokens(const ModelFamily& family) {
  static constexpr auto kWithTexts =
      std::to_array<std::string_view>({"clip", "siglip", "UNet2DConditionModel",
                                       "FluxTransformer2DModel", "CogVideoXTransformer3DModel"});
  return family.kind == ModelKind::kLanguage || family.kind == ModelKind::kMultimodal ||
         family.kind == ModelKind::kAudio || begins_with_any(family.name, kWithTexts);
}

bool reads_images(const ModelFamily& family) {
  return family.kind != ModelKind::kLanguage && family.kind != ModelKind::kAudio &&
         family.name != "mlp" && family.name != "clip_text_model" &&
         family.name != "siglip_text_model";
}

bool reads_frames(const ModelFamily& family) {
  return family.name == "vggt" || family.name.find("CogVideoX") != std::string_view::npos;
}

// The extents of a sample that the model does not have.
void name_idle_extents(const Node& document, const Job& job, std::vector<std::string>& warnings) {
  const ModelFamily* family = family_of(job.model);
  if (family == nullptr) return;
  struct Extent {
    const char* key;
    bool is_read;
  };
  const bool many_images = family->kind == ModelKind::kMultimodal;
  for (const auto& [key, is_read] : {Extent{"training.sequence_length", reads_tokens(*family)},
                                     Extent{"training.image_size", reads_images(*family)},
                                     Extent{"training.num_frames", reads_frames(*family)},
                                     Extent{"training.num_images", many_images}}) {
    const Node* value = value_at(document, key);
    if (value == nullptr || value->is_null() || is_read) continue;
    warnings.push_back(
        fmt::format("{} is set, but models of the family {} have no such input; it changes nothing",
                    key, family->name));
  }
}

void name_idle_tokens(const Job& job, std::vector<std::string>& warnings) {
  const TrainingSpec& training = job.training;
  if (training.mode == Mode::kGenerate || training.settings.new_tokens == 0) return;
  warnings.push_back(fmt::format(
      "training.new_tokens is set, but training.mode is {}: nothing is generated (--mode generate)",
      enum_name(training.mode)));
}

// Tensor and pipeline parallelism divide the GPUs into groups of equal size.
void name_impossible_groups(const Node& document, const Job& job,
                            std::vector<std::string>& warnings) {
  const ParallelSpec& parallel = job.parallel;
  const std::int64_t group = parallel.tensor * parallel.pipeline;
  if (value_at(document, "parallel.num_gpus") == nullptr || parallel.num_gpus % group == 0) return;
  warnings.push_back(fmt::format(
      "parallel.num_gpus is {}, no multiple of the {} that tensor x pipeline parallelism need: no "
      "such run starts; the figures are those of a GPU of {}",
      parallel.num_gpus, group, group));
}

// FlashAttention 2: "only support fp16 and bf16 data type", "only supports Ampere GPUs or newer".
void name_refused_attention(const Job& job, std::vector<std::string>& warnings) {
  constexpr int kAmpere = 80;
  const TrainingSpec& training = job.training;
  if (training.settings.attention != AttentionImplementation::kFlash) return;
  const DType type = training.precision.autocast.value_or(training.precision.parameters);
  if (!is_16bit_float(type)) {
    warnings.push_back(fmt::format(
        "training.attention is flash, which computes in fp16 and bf16 only: the library would "
        "refuse {}",
        to_string(type)));
  }
  const int capability = named_capability(job.target);
  if (capability > 0 && capability < kAmpere) {
    warnings.push_back(fmt::format(
        "training.attention is flash, which needs sm_80 or newer: the library would refuse this "
        "GPU, which is sm_{}",
        capability));
  }
}

// "You cannot perform fine-tuning on purely quantized models", says transformers' Trainer.
void name_untrained_weights(const Node& document, const Job& job,
                            std::vector<std::string>& warnings) {
  const TrainingSpec& training = job.training;
  const bool is_packed = training.quantization != Quantization::kNone &&
                         training.quantization != Quantization::kMxfp4;  // unpacked in training
  if (!is_packed || training.mode != Mode::kTrain || training.lora || job.model.train() ||
      job.model.modules() != nullptr || value_at(document, "model.adapter") != nullptr)
    return;
  warnings.emplace_back(
      "quantized weights are not trained, and transformers refuses to train such a model without "
      "adapters: only its other weights are counted as trained; set training.lora (--lora-rank)");
}

}  // namespace

std::vector<std::string> setting_warnings(const Node& document, const Job& job) {
  std::vector<std::string> warnings;
  if (job.model.trace() != nullptr) return warnings;
  name_idle_extents(document, job, warnings);
  name_idle_tokens(job, warnings);
  name_impossible_groups(document, job, warnings);
  name_refused_attention(job, warnings);
  name_untrained_weights(document, job, warnings);
  return warnings;
}

}  // namespace memfathom
