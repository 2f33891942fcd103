// Changes: what one can alter in a job so that it takes less memory, and what each costs its owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/job/job.h"
#include "estimator/job/patch.h"

namespace memfathom {

// Of one group only one change can be part of a combination.
enum class ChangeGroup : std::uint8_t {
  kAllocator,
  kEvaluation,
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

struct SingleChange {
  std::string name;    // as `compare --strategies` takes it: "checkpointing"
  std::string change;  // "gradient_checkpointing none -> full"
  std::string costs;   // in words: what one pays for it
  ChangeGroup group = ChangeGroup::kAllocator;
  int price = 0;  // for ordering: how much its owner gives up
  Patch patch;
};

// Those that mean something for this job: what it has already is not offered. Extents and batch
// sizes that fit are found by searching (largest.h) and are not among these.
std::vector<SingleChange> possible_changes(const Node& document, const Job& job);

// LoRA of the usual rank on the layers that PEFT adapts by default in such a model.
Patch lora_patch(const ModelSpec& model);
// Adapters instead of all weights, in 16 or in 4 bits, and smaller adapters than there are.
void add_lora_changes(const Node& document, const Job& job, std::vector<SingleChange>& changes);

// A strategy by name ("zero2", "checkpointing+adamw-8bit", "batch=4", "training.attention=flash")
// as a patch for the job. Throws Error(kUsage) naming the nearest known one.
Patch strategy_patch(std::string_view strategy, const Job& job);
std::vector<std::string_view> strategy_names();

}  // namespace memfathom
