// plan_tables: the models and sizes of the plans.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/bytes.h"
#include "core/enum_names.h"
#include "profiler/probe_target.h"

namespace memfathom {

enum class PlanLevel { kQuick, kStandard, kFull };

template <>
inline constexpr auto kEnumNames<PlanLevel> = std::to_array<EnumName<PlanLevel>>(
    {{PlanLevel::kQuick, "quick"}, {PlanLevel::kStandard, "standard"}, {PlanLevel::kFull, "full"}});

struct ModelRow {
  PlanLevel level;  // the smallest plan that includes it
  const char* family;
  const char* variant;
  const char* optimizer;
  const char* model;      // JSON of the contract's `model`
  bool own_only = false;  // the PyTorch probe cannot build it
};
std::span<const ModelRow> model_rows();

// What people run in PyTorch beyond a plain loop. Each has a precision of its own and two sizes.
struct PytorchRow {
  PlanLevel level;
  const char* family;
  const char* variant;
  const char* precision;
  const char* changes;  // a merge patch of the job, known to its replay
  // A merge patch that only the probe knows: the job is measured and not replayed. Its family is
  // one of kUnreplayedFamilies.
  const char* execution = nullptr;
  bool on_cpu = false;  // PyTorch's cpu device runs it alike
};
std::span<const PytorchRow> pytorch_rows();
// The model of all of them: a decoder with a large vocabulary. JSON of the contract's `model`.
const char* pytorch_model();

inline constexpr std::array<std::string_view, 2> kUnreplayedFamilies{"compiled", "cuda-graph"};

struct SizeRow {
  PlanLevel level;
  Bytes target;
  bool validation;
};
std::span<const SizeRow> size_rows(DeviceKind kind);

struct PrecisionRow {
  PlanLevel level;
  const char* precision;
  bool pure_16bit = false;
};
// The cpu device computes 16-bit types through fp32 copies, which GPUs do not make, so it is
// measured in fp32.
std::span<const PrecisionRow> precision_rows(DeviceKind kind);

}  // namespace memfathom
