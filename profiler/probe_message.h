// Probe messages: the request to a probe process and its reply, one JSON document each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "core/sample.h"
#include "profiler/driver_records.h"
#include "profiler/job_runner.h"

namespace memfathom {

struct ProbeRequest {
  std::string device;    // "cpu", "cuda:0", "virtual:NAME"
  std::string workload;  // its name; empty: only the environment is requested
  std::string job;       // JSON
  LibraryUse uses;       // the libraries whose first use is measured before the job
  Bytes ceiling;         // of reserved memory
  std::uint64_t seed = 0;
  std::string trace;  // the file for the run's trace; empty: none
  // Record the driver's allocations with CUPTI, which takes memory of its own: only differences
  // between this probe's readings are those of a process without it.
  bool driver_records = false;
};

struct ProbeReply {
  Environment environment;
  Bytes memory_free;  // of the device, when it was opened
  // Of the cuDNN that the framework loaded, which need not be the system's; empty: not reported.
  std::string cudnn_directory;
  std::int64_t resident_threads = 0;  // that the GPU can hold at once; 0: not reported
  int devices = 0;  // on which ranks of a collective can run; 0: the probe runs none
  // The caller sets job, workload and family; the probe fills in the rest of the sample.
  std::optional<Sample> sample;
  std::optional<DriverRecords> driver;  // if the request asked for them
};

std::string to_message(const ProbeRequest& request);
std::string to_message(const ProbeReply& reply);
// Throw Error(kInput) for malformed text.
ProbeRequest request_from(std::string_view message);
ProbeReply reply_from(std::string_view message);

}  // namespace memfathom
