// DriverPass: adds to samples of a GPU what the driver's own records show between two readings.
#pragma once

#include "profiler/campaign.h"

namespace memfathom {

// CUPTI takes memory of its own, so it is not part of a sample's readings: one more probe runs the
// job with it, and only what its records lie above that probe's own readings is added to the
// sample, whose metric then ends in "+cupti". Where CUPTI refuses or a probe fails with it, no
// further probe tries, and the peaks are those of the sampler.
class DriverPass {
 public:
  // `options` must outlive the object.
  explicit DriverPass(const CampaignOptions& options)
      : options_(options), tries_(options.driver_records) {}

  void add_to(Sample& sample, const Workload& workload);

 private:
  void give_up(const std::string& why);

  const CampaignOptions& options_;
  bool tries_;
};

}  // namespace memfathom
