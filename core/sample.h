// Sample: one measured run of one job in a fresh process. Observation: a real job measured by a
// user.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/enum_names.h"
#include "core/workspace.h"

namespace memfathom {

enum class SampleStatus { kOk, kCrashed, kTimedOut, kOutOfMemory, kKilled, kDisturbed, kFailed };

template <>
inline constexpr auto kEnumNames<SampleStatus> =
    std::to_array<EnumName<SampleStatus>>({{SampleStatus::kOk, "ok"},
                                           {SampleStatus::kCrashed, "crashed"},
                                           {SampleStatus::kTimedOut, "timed_out"},
                                           {SampleStatus::kOutOfMemory, "out_of_memory"},
                                           {SampleStatus::kKilled, "killed"},
                                           {SampleStatus::kDisturbed, "disturbed"},
                                           {SampleStatus::kFailed, "failed"}});

// Device use right after a stage of the probe: baseline, context, cublas, cudnn, cufft, tensors,
// warmup, steps.
struct StageReading {
  std::string stage;
  Bytes device_used;

  bool operator==(const StageReading&) const = default;
};

struct Sample {
  std::string workload;     // the plan's name for it, e.g. "mlp/w1024/d4/b64/fp32"
  std::string family;       // transformer, attention, mlp, conv, fno, context, ...
  std::string job;          // canonical JSON of the job (docs/contract.md §3)
  bool validation = false;  // held out for validation, never fitted
  SampleStatus status = SampleStatus::kOk;
  std::string status_note;  // "signal 11", "no answer within 60 s", ...
  std::optional<Bytes> allocated_peak;
  std::optional<Bytes> reserved_peak;
  std::optional<Bytes> device_peak;  // minus the baseline reading: this process's share
  std::string device_metric;         // "nvml-process", "mem-get-info", "rss", "virtual"
  std::optional<double> seconds_per_step;
  int repeats = 1;
  std::optional<double> spread;  // relative half-range of device_peak over the repeats
  std::string stop_criterion;    // why repeating stopped: "spread below 0.5 %", "budget spent", ...
  std::vector<StageReading> stages;
  std::vector<WorkspaceRequest> workspaces;

  bool operator==(const Sample&) const = default;
};

enum class Metric { kAllocated, kReserved, kDevice };

template <>
inline constexpr auto kEnumNames<Metric> =
    std::to_array<EnumName<Metric>>({{Metric::kAllocated, "allocated"},
                                     {Metric::kReserved, "reserved"},
                                     {Metric::kDevice, "device"}});

struct Observation {
  std::string job;  // canonical JSON
  Metric metric = Metric::kDevice;
  std::optional<Bytes> bytes;
  std::optional<bool> fits;  // if only this is known: a censored row
  std::string gpu;
  std::string driver, cuda, cudnn, framework, framework_version;
  std::string source;  // who measured it
  std::string group;
  std::string note;

  bool operator==(const Observation&) const = default;
};

const char* to_string(SampleStatus status);
const char* to_string(Metric metric);
std::optional<SampleStatus> parse_sample_status(std::string_view text);
std::optional<Metric> parse_metric(std::string_view text);

}  // namespace memfathom
