// Changes: what one can alter in a job so that it takes less memory, and what each costs its owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/document.h"
#include "core/enum_names.h"
#include "estimator/job/job.h"
#include "estimator/job/patch.h"
#include "estimator/models/blocks/model_family.h"

namespace memfathom {

// Of one group only one change can be part of a combination.
enum class ChangeGroup : std::uint8_t {
  kAllocator,
  kEvaluation,
  kReference,
  kAttention,
  kLoss,
  kPrecision,
  kCheckpointing,
  kOptimizer,
  kSharding,
  kOffloadOptimizer,
  kOffloadParameters,
  kOffloadActivations,
  kTrainable,
  kRank,
  kBatch,
  kExtent,
};

// What its owner gives up, the least first: the order in which changes are tried.
enum class ChangeKind : std::uint8_t {
  kFree,              // a setting: no time, no accuracy
  kCheckpointing,     // time
  kBatch,             // smaller passes, the same effective batch
  kSharding,          // traffic between the GPUs
  kDifferent,         // the result: fewer bits, adapters, another optimizer
  kFewerBits,         // a little accuracy of the answers: of jobs that do not train
  kOffloadOptimizer,  // host memory, and a step on the host
  kOffload,           // weights or activations over the host's link in every pass
  kSample,            // what the model sees of a sample
};

template <>
inline constexpr auto kEnumNames<ChangeKind> =
    std::to_array<EnumName<ChangeKind>>({{ChangeKind::kFree, "free"},
                                         {ChangeKind::kCheckpointing, "checkpointing"},
                                         {ChangeKind::kBatch, "batch"},
                                         {ChangeKind::kSharding, "sharding"},
                                         {ChangeKind::kDifferent, "different training"},
                                         {ChangeKind::kFewerBits, "fewer bits"},
                                         {ChangeKind::kOffloadOptimizer, "optimizer offload"},
                                         {ChangeKind::kOffload, "offload"},
                                         {ChangeKind::kSample, "smaller samples"}});

constexpr std::string_view to_string(ChangeKind kind) { return enum_name(kind); }

// Whether the result is that of the unchanged job, up to rounding and the order of sums.
constexpr bool trains_the_same(ChangeKind kind) {
  return kind != ChangeKind::kDifferent && kind != ChangeKind::kFewerBits &&
         kind != ChangeKind::kSample;
}

struct SingleChange {
  std::string name;    // as `compare --strategies` takes it: "checkpointing"
  std::string change;  // "gradient_checkpointing none -> full"
  std::string costs;   // in words: what one pays for it
  ChangeGroup group = ChangeGroup::kAllocator;
  ChangeKind kind = ChangeKind::kFree;
  int order = 0;  // among those of its kind, the one to try first has the least
  Patch patch;
  bool may_be_slower = false;  // costs_at() says so where the time factor does

  // `costs`, and whether it is slower with this time factor.
  std::string costs_at(double time_factor) const;
};

// The order in which changes are tried.
inline bool is_cheaper(const SingleChange& a, const SingleChange& b) {
  return std::pair(a.kind, a.order) < std::pair(b.kind, b.order);
}

// Those that mean something for this job: what it has already is not offered, nor what PyTorch,
// DeepSpeed or bitsandbytes would refuse. Extents and batch sizes that fit are found by searching
// (largest_extent.h) and are not among these.
std::vector<SingleChange> possible_changes(const Node& document, const Job& job);

// The modules that PEFT would adapt in this model.
LoraTargets usual_lora_targets(const ModelSpec& model);
// The optimizer of that name in PyTorch's fused form.
KeyChange fused_change(OptimizerName name);
// Preference pairs with that reference.
KeyChange reference_change(const char* reference);

// LoRA of the usual rank on the layers that PEFT adapts by default in such a model.
Patch lora_patch(const Job& job);
// Adapters instead of all weights, in 16 or in 4 bits, and smaller adapters than there are.
void add_lora_changes(const Node& document, const Job& job, std::vector<SingleChange>& changes);

// A strategy by name ("zero2", "checkpointing+adamw-8bit", "batch=4", "training.attention=flash")
// as a patch for the job. Throws Error(kUsage) naming the nearest known one.
Patch strategy_patch(std::string_view strategy, const Job& job);
std::vector<std::string_view> strategy_names();

}  // namespace memfathom
