#include "cli/bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "profiler/probe_target.h"
#include "profiler/regression/suite.h"

namespace memfathom {
namespace {

constexpr const char* kTinyJob =
    R"({"model":{"input":{"shape":[1024],"requires_grad":true},"layers":[{"type":"relu"}],"loss":"mean"},)"
    R"("training":{"batch_size":1,"optimizer":"none"}})";

std::string module_counter(const MeasuredLibrary& library) {
  return fmt::format("module_{}_bytes", library.name);
}

std::vector<DeviceCase> startup_cases() {
  std::vector<DeviceCase> cases{{"startup/context", "context", kTinyJob, "context_bytes", {}}};
  for (const MeasuredLibrary& library : kMeasuredLibraries) {
    LibraryUse uses;
    uses.*library.used = true;
    cases.push_back({fmt::format("startup/{}", library.name),
                     fmt::format("modules of {}", library.title), kTinyJob, module_counter(library),
                     uses});
  }
  return cases;
}

SuiteScale default_scale(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu: return SuiteScale::kSmall;
    case DeviceKind::kCuda:
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  return SuiteScale::kFull;
}

std::string component_of(Library library) {
  const bool is_lt = library == Library::kCublasLt;
  return fmt::format("workspace_{}", to_string(is_lt ? Library::kCublas : library));
}

// Bytes that a stage added to the previous one; nullopt if it was not reached.
std::optional<Bytes> added_by(std::string_view stage, const std::vector<StageReading>& stages) {
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].stage != stage) continue;
    return std::max(Bytes{}, stages[i].device_used - stages[i - 1].device_used);
  }
  return std::nullopt;
}

void fill(const Sample& sample, BenchRow& row) {
  const auto set = [&](const std::string& name, std::optional<Bytes> bytes) {
    if (bytes) row.counters[name] = *bytes;
  };
  set("allocated_peak_bytes", sample.allocated_peak);
  set("reserved_peak_bytes", sample.reserved_peak);
  set("device_peak_bytes", sample.device_peak);
  set("context_bytes", added_by("context", sample.stages));
  for (const MeasuredLibrary& library : kMeasuredLibraries)
    set(module_counter(library), added_by(library.name, sample.stages));
  if (!sample.workspaces.empty()) {
    Bytes largest;
    for (const WorkspaceRequest& request : sample.workspaces) {
      largest = std::max(largest, request.bytes);
      row.operations.push_back({component_of(request.library), request.shape, request.bytes});
    }
    row.counters["workspace_bytes"] = largest;
  }
}

}  // namespace

std::vector<DeviceCase> device_cases(const std::string& device, const std::string& scale) {
  const DeviceKind kind = parse_device(device).kind;
  const SuiteScale size = scale == "tiny"    ? SuiteScale::kTiny
                          : scale == "small" ? SuiteScale::kSmall
                          : scale == "full"  ? SuiteScale::kFull
                                             : default_scale(kind);
  std::vector<DeviceCase> cases = startup_cases();
  for (JobCase& c : job_suite(size))
    cases.push_back({std::move(c.name), std::move(c.label), std::move(c.job), "", {}});
  return cases;
}

BenchRow row_of(const ProbeOutcome& outcome, const std::string& startup) {
  BenchRow row;
  const bool has_sample = outcome.reply && outcome.reply->sample;
  if (outcome.status != SampleStatus::kOk || !has_sample) {
    row.error = outcome.note.empty()
                    ? std::string(to_string(outcome.status))
                    : fmt::format("{}: {}", to_string(outcome.status), outcome.note);
    return row;
  }
  fill(*outcome.reply->sample, row);
  if (!startup.empty()) {
    std::erase_if(row.counters, [&](const auto& counter) { return counter.first != startup; });
    if (row.counters.empty()) row.error = "the probe did not reach that stage";
  }
  return row;
}

}  // namespace memfathom
