#include "core/sample.h"

namespace memfathom {

const char* to_string(SampleStatus status) {
  switch (status) {
    case SampleStatus::kOk: return "ok";
    case SampleStatus::kCrashed: return "crashed";
    case SampleStatus::kTimedOut: return "timed_out";
    case SampleStatus::kOutOfMemory: return "out_of_memory";
    case SampleStatus::kKilled: return "killed";
    case SampleStatus::kDisturbed: return "disturbed";
    case SampleStatus::kFailed: return "failed";
  }
  return "failed";
}

const char* to_string(Metric metric) {
  switch (metric) {
    case Metric::kAllocated: return "allocated";
    case Metric::kReserved: return "reserved";
    case Metric::kDevice: return "device";
  }
  return "device";
}

std::optional<SampleStatus> parse_sample_status(std::string_view text) {
  for (const SampleStatus status :
       {SampleStatus::kOk, SampleStatus::kCrashed, SampleStatus::kTimedOut,
        SampleStatus::kOutOfMemory, SampleStatus::kKilled, SampleStatus::kDisturbed,
        SampleStatus::kFailed}) {
    if (text == to_string(status)) return status;
  }
  return std::nullopt;
}

std::optional<Metric> parse_metric(std::string_view text) {
  for (const Metric metric : {Metric::kAllocated, Metric::kReserved, Metric::kDevice}) {
    if (text == to_string(metric)) return metric;
  }
  return std::nullopt;
}

}  // namespace memfathom
