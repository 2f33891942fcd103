#include "cli/observe/stored_observations.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/database.h"
#include "core/gpus.h"
#include "db/store.h"

namespace memfathom {

Observation observation_of(const WatchedPeak& peak, const ProcessWatch& watch, std::string job) {
  Observation observation;
  observation.job = std::move(job);
  observation.metric = Metric::kDevice;
  observation.bytes = peak.bytes;
  observation.gpu = "cpu";
  observation.framework = "pytorch";
  observation.source = "memfathom";
  observation.note = fmt::format("{}, the highest of {} readings", peak.metric, watch.readings());
  if (peak.device < 0) return observation;
  const GpuStatus status = watch.nvml()->status(peak.device);
  const Gpu* gpu = find_gpu_of_driver(status.name, status.total);
  observation.gpu = gpu != nullptr ? std::string(gpu->name) : status.name;
  observation.driver = status.driver;
  return observation;
}

int store_observations(const std::vector<Observation>& observations, const Context& context) {
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  Store::Batch batch(store);
  int added = 0;
  for (const Observation& observation : observations)
    added += store.insert_observation(observation) ? 1 : 0;
  batch.commit();
  const auto removed = std::count_if(observations.begin(), observations.end(),
                                     [&](const Observation& o) { return store.is_removed(o); });
  if (removed > 0) {
    context.warn(
        fmt::format("{} of the observations were removed before and are not used; `memfathom "
                    "observations restore` takes them back",
                    removed));
  }
  return added;
}

Bytes estimated_bytes(const Estimate& estimate, Metric metric) {
  const Totals& totals = estimate.totals;
  switch (metric) {
    case Metric::kAllocated: return std::max(totals.allocated_peak, totals.first_allocated_peak);
    case Metric::kReserved: return totals.reserved_peak;
    case Metric::kDevice: break;
  }
  return totals.device_peak;
}

std::string estimated_vs_observed(const Estimate& estimate, const Observation& observation) {
  const Bytes guess = estimated_bytes(estimate, observation.metric);
  if (!observation.bytes || observation.bytes->count() == 0)
    return fmt::format("{}: estimated {}", to_string(observation.metric), to_string(guess));
  const double ratio =
      static_cast<double>(guess.count()) / static_cast<double>(observation.bytes->count());
  return fmt::format("{}: estimated {}, observed {} ({:+.1f} %)", to_string(observation.metric),
                     to_string(guess), to_string(*observation.bytes), 100 * (ratio - 1));
}

}  // namespace memfathom
