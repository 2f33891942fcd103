// checked_probe: runs a probe and holds its sample against the GPU's use around it and against
// itself.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "profiler/probe_process.h"

namespace memfathom {

struct ProbeLimits {
  std::chrono::milliseconds limit{60'000};  // of one probe
  // How long the whole GPU's use may take to return to what it was before the probe.
  std::chrono::milliseconds return_limit{2'000};
  const std::atomic<bool>* stop = nullptr;  // once set, the running probe is killed
};

// As run_probe(). A sample of the whole GPU after which the GPU's use is not what it was before
// becomes `disturbed`, one that contradicts itself `failed`; an unusual one stays `ok` with a note.
ProbeOutcome run_checked_probe(const ProbeProgram& program, const ProbeRequest& request,
                               const ProbeLimits& limits);

// Why the figures of a GPU sample cannot all be true: allocated <= reserved <= device. Empty if
// they can.
std::string contradiction_in(const Sample& sample);

// Why what a GPU sample holds outside the allocator is outside the band of published figures, by
// stage. Empty if it is inside, or if there is no band for this device and software.
std::string unusual_overhead(const Sample& sample, const Environment& environment,
                             std::int64_t resident_threads);

}  // namespace memfathom
