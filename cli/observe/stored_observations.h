// Stored observations: measured peaks of a job, stored and compared with its estimate.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/sample.h"
#include "estimator/answer/estimate.h"
#include "profiler/process_watch.h"

namespace memfathom {

// A monitored peak as an observation of `job` (JSON), with GPU and driver.
Observation observation_of(const WatchedPeak& peak, const ProcessWatch& watch, std::string job);

// Returns the number of new ones.
int store_observations(const std::vector<Observation>& observations, const Context& context);

// The estimate's value of that metric. Allocated uses the first iteration if that is higher, as
// max_memory_allocated() does.
Bytes estimated_bytes(const Estimate& estimate, Metric metric);

// "device: estimated 3.13 GiB, observed 3.01 GiB (+4.0 %)".
std::string estimated_vs_observed(const Estimate& estimate, const Observation& observation);

}  // namespace memfathom
