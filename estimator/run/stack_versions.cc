#include "estimator/run/stack_versions.h"

#include <array>
#include <optional>
#include <string_view>

#include "core/version.h"

namespace memfathom {
namespace {

// PyTorch asks cuDNN through its graphs and their heuristics, zero_grad() drops gradients where it
// had filled them with zeros, and optimizers go over all parameters at once: 2.0.
constexpr Version kTorchTwo{2, 0};
// FSDP waits on the host before a third all-gather (limit_all_gathers is true by default,
// pytorch/pytorch#104900): 2.1. Before, the host ran ahead, and every gathered block got memory of
// its own.
constexpr Version kGathersAreLimited{2, 1};
// Where no optimizer is named, transformers' Trainer takes PyTorch's fused AdamW from these
// releases on (training_args.py), and the one that goes over all parameters at once before.
constexpr Version kTrainerFuses{4, 54};
constexpr Version kTrainerFusesOn{2, 8};
constexpr int kTuring = 75;
constexpr std::string_view kTorchBeforeTuring = "1.10";

struct ReleaseVersions {
  Version torch, transformers, bitsandbytes;
};

// Releases that were current together (release dates of the three projects).
constexpr auto kReleaseVersions = std::to_array<ReleaseVersions>({
    {{2, 0}, {4, 28}, {0, 38, 0}},
    {{2, 1}, {4, 35}, {0, 41, 1}},
    {{2, 2}, {4, 38}, {0, 42, 0}},
    {{2, 3}, {4, 41}, {0, 43, 1}},
    {{2, 4}, {4, 44}, {0, 43, 2}},
    {{2, 5}, {4, 46}, {0, 44, 1}},
    {{2, 6}, {4, 49}, {0, 45, 1}},
    {{2, 7}, {4, 52}, {0, 45, 5}},
    {{2, 8}, {4, 56}, {0, 46, 1}},
    {{2, 9}, {4, 57}, {0, 48, 1}},
    {{2, 10}, {5, 0}, {0, 49, 1}},
});

// LitGPT's recipe: adapters of the model's type, which need no autocast, and a dropout before them.
void adapt_to_litgpt(TrainingSpec& training) {
  constexpr double kAdapterDropout = 0.05;
  if (!training.lora) return;
  if (!training.lora->dropout) training.lora->dropout = kAdapterDropout;
  if (!training.lora->precision) training.lora->precision = training.precision.parameters;
}

}  // namespace

std::string torch_of(std::string_view version, int compute_capability) {
  if (Version::parse(version) || compute_capability >= kTuring) return std::string(version);
  return std::string(kTorchBeforeTuring);
}

bool uses_older_cudnn_api(std::string_view torch_version) {
  const std::optional<Version> version = Version::parse(torch_version);
  return version && *version < kTorchTwo;
}

void apply_stack(Job& job, FrameworkPolicy& policy, BitsandbytesRelease unnamed) {
  const StackSpec& stack = job.target.stack;
  ReleaseVersions era{policy.torch_version, job.training.settings.transformers.version(),
                      kReleaseVersions.back().bitsandbytes};
  for (auto known = kReleaseVersions.rbegin(); known != kReleaseVersions.rend(); ++known) {
    if (policy.torch_version.series() <= known->torch) era = *known;
  }
  if (unnamed == BitsandbytesRelease::kCurrent)
    era.bitsandbytes = kReleaseVersions.back().bitsandbytes;
  era.transformers = Version::parse(stack.transformers).value_or(era.transformers);
  era.bitsandbytes = Version::parse_latest(stack.bitsandbytes).value_or(era.bitsandbytes);
  const TransformersPolicy transformers(era.transformers);
  job.training.settings.transformers = transformers;
  job.training.settings.library = stack.library;
  if (stack.library == ModelLibrary::kLitgpt) adapt_to_litgpt(job.training);
  if (!job.training.kv_cache && !transformers.has_cache_objects())
    job.training.kv_cache = KvCache::kTuple;
  if (policy.torch_version < kTorchTwo) {
    if (!job.training.zero_grad) job.training.zero_grad = ZeroGrad::kInPlace;
    job.training.optimizer.form = OptimizerForm::kForLoop;
  }
  if (job.training.trainer_optimizer && policy.torch_version >= kTrainerFusesOn &&
      era.transformers >= kTrainerFuses)
    job.training.optimizer_form = OptimizerForm::kFused;
  if (!job.parallel.limit_all_gathers)
    job.parallel.limit_all_gathers = policy.torch_version >= kGathersAreLimited;
  policy.set_bitsandbytes(era.bitsandbytes);
}

}  // namespace memfathom
