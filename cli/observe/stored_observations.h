// Observing: peaks of a job that ran, kept as observations beside what was estimated of it.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/sample.h"
#include "estimator/answer/estimate.h"
#include "profiler/process_watch.h"

namespace memfathom {

// A watched peak as an observation of `job` (JSON): on which GPU, under which driver.
Observation observation_of(const WatchedPeak& peak, const ProcessWatch& watch, std::string job);

// How many of them were new.
int store_observations(const std::vector<Observation>& observations, const Context& context);

// The estimate's figure of that metric. Allocated is the first iteration's where that is higher:
// that is what max_memory_allocated() shows.
Bytes estimated_bytes(const Estimate& estimate, Metric metric);

// "device: estimated 3.13 GiB, observed 3.01 GiB (+4.0 %)".
std::string estimated_vs_observed(const Estimate& estimate, const Observation& observation);

}  // namespace memfathom
