#include "profiler/driver_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/collectives.h"

namespace memfathom {
namespace {

// Of a sample's own readings after the first.
Bytes rise_of(const std::vector<StageReading>& stages) {
  Bytes highest;
  for (const StageReading& stage : stages) highest = std::max(highest, stage.device_used);
  return stages.empty() ? Bytes{} : highest - stages.front().device_used;
}

}  // namespace

void DriverPass::give_up(const std::string& why) {
  tries_ = false;
  if (options_.unrecorded) options_.unrecorded(why);
}

void DriverPass::add_to(Sample& sample, const Workload& workload) {
  if (!tries_ || sample.status != SampleStatus::kOk || !sample.device_peak ||
      workload.family == kCollectivesFamily)
    return;
  ProbeRequest request = request_of(workload, options_, 0);
  request.trace.clear();
  request.driver_records = true;
  const ProbeOutcome outcome =
      run_probe(options_.program, request, options_.limit, options_.stop_now);
  if (options_.stop_now != nullptr && *options_.stop_now) return;
  // Other processes change the readings of a whole GPU, not the records.
  const bool ran =
      outcome.status == SampleStatus::kOk || outcome.status == SampleStatus::kDisturbed;
  if (!ran || !outcome.reply || !outcome.reply->sample || !outcome.reply->driver) {
    return give_up(fmt::format("a probe with CUPTI {}: {}", to_string(outcome.status),
                               outcome.note.empty() ? "its reply has no records" : outcome.note));
  }
  const DriverRecords& records = *outcome.reply->driver;
  if (!records.missing.empty()) return give_up(records.missing);
  if (!records.complete()) {
    if (options_.unrecorded)
      options_.unrecorded(
          fmt::format("{}: CUPTI dropped {} records", workload.name, records.dropped));
    return;
  }
  const std::vector<StageReading>& stages = outcome.reply->sample->stages;
  const Bytes peak = rise_of(sample.stages) + beyond_readings(records, stages);
  sample.device_peak = std::max(*sample.device_peak, peak);
  sample.device_metric += "+cupti";
  if (options_.recorded) options_.recorded(sample, records, stages);
}

}  // namespace memfathom
