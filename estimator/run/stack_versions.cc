#include "estimator/run/stack_versions.h"

#include <array>
#include <string_view>

#include "core/version_number.h"

namespace memfathom {
namespace {

// Past key values were tuples, copied whole at each step, before transformers 4.36 made them a
// cache object.
constexpr int kCacheObjects = 436;
// bitsandbytes: quantized whole weights in their own type, stopped keeping the inputs of 4-bit
// products, and no longer laid int8 out in tiles.
constexpr int kFirstKeepingHalfDtype = 4300;
constexpr int kInputsDropped = 4302;
constexpr int kRowsOfInt8 = 4500;
// PyTorch asks cuDNN through its graphs and their heuristics, zero_grad() drops gradients where it
// had filled them with zeros, and optimizers go over all parameters at once: 2.0.
constexpr int kTwo = 200;
constexpr int kTuring = 75;
constexpr std::string_view kTorchBeforeTuring = "1.10";

struct ReleaseVersions {
  int torch;
  int transformers;
  int bitsandbytes;  // with its last number: release_number
};

// Releases that were current together (release dates of the three projects).
constexpr auto kReleaseVersions = std::to_array<ReleaseVersions>({{200, 428, 3800},
                                                                  {201, 435, 4101},
                                                                  {202, 438, 4200},
                                                                  {203, 441, 4301},
                                                                  {204, 444, 4302},
                                                                  {205, 446, 4401},
                                                                  {206, 449, 4501},
                                                                  {207, 452, 4505},
                                                                  {208, 456, 4601},
                                                                  {209, 457, 4801},
                                                                  {210, 500, 4901}});

// LitGPT's recipe: adapters of the model's type, which need no autocast, and a dropout before them.
void adapt_to_litgpt(TrainingSpec& training) {
  constexpr double kAdapterDropout = 0.05;
  if (!training.lora) return;
  if (!training.lora_dropout_given) training.lora->dropout = kAdapterDropout;
  if (training.lora_precision_given) return;
  training.lora->precision = training.precision.parameters;
  training.lora_precision_given = true;
}

}  // namespace

std::string torch_of(std::string_view version, int compute_capability) {
  if (version_number(version) > 0 || compute_capability >= kTuring) return std::string(version);
  return std::string(kTorchBeforeTuring);
}

bool uses_older_cudnn_api(std::string_view torch_version, int compute_capability) {
  const int version = version_number(torch_of(torch_version, compute_capability));
  return version > 0 && version < kTwo;
}

void apply_stack(Job& job, FrameworkPolicy& policy, BitsandbytesRelease unnamed) {
  const StackSpec& stack = job.target.stack;
  ReleaseVersions era{policy.torch_version, job.training.settings.transformers_version,
                      kReleaseVersions.back().bitsandbytes};
  for (auto known = kReleaseVersions.rbegin(); known != kReleaseVersions.rend(); ++known) {
    if (policy.torch_version <= known->torch) era = *known;
  }
  if (unnamed == BitsandbytesRelease::kCurrent)
    era.bitsandbytes = kReleaseVersions.back().bitsandbytes;
  if (const int given = version_number(stack.transformers); given > 0) era.transformers = given;
  if (const int given = release_number(stack.bitsandbytes); given > 0) era.bitsandbytes = given;
  job.training.settings.transformers_version = era.transformers;
  job.training.settings.library = stack.library;
  if (stack.library == ModelLibrary::kLitgpt) adapt_to_litgpt(job.training);
  if (!job.training.kv_cache_given && era.transformers < kCacheObjects) {
    job.training.settings.kv_cache = KvCache::kTuple;
  }
  if (policy.torch_version < kTwo) {
    if (!job.training.zero_grad_given) job.training.zero_grad = ZeroGrad::kInPlace;
    if (!job.training.optimizer_form_given) job.training.optimizer.form = OptimizerForm::kForLoop;
  }
  policy.bitsandbytes_keeps_input = era.bitsandbytes < kInputsDropped;
  policy.bitsandbytes_quantizes_from_fp16 = era.bitsandbytes < kFirstKeepingHalfDtype;
  policy.bitsandbytes_tiles_int8 = era.bitsandbytes < kRowsOfInt8;
}

}  // namespace memfathom
