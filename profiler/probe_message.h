// Probe messages: what goes to a probe's process and what comes back, as one JSON document each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "core/sample.h"
#include "profiler/job_runner.h"

namespace memfathom {

struct ProbeRequest {
  std::string device;    // "cpu", "cuda:0", "virtual:NAME"
  std::string workload;  // its name; empty: only the environment is asked for
  std::string job;       // JSON
  LibraryUse uses;       // whose first use is measured before the job
  Bytes ceiling;         // of reserved memory
  std::uint64_t seed = 0;
  std::string trace;  // a file that gets the trace of the run; empty: none
};

struct ProbeReply {
  Environment environment;
  Bytes memory_free;  // of the device, when it was opened
  // Job, workload and family are the asker's business; the rest of the sample is filled in.
  std::optional<Sample> sample;
};

std::string to_message(const ProbeRequest& request);
std::string to_message(const ProbeReply& reply);
// Throw Error(kInput) for anything else.
ProbeRequest request_from(std::string_view message);
ProbeReply reply_from(std::string_view message);

}  // namespace memfathom
