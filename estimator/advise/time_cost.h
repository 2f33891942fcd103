// TimeCost: roughly how much longer a changed job takes for the same samples: extra FLOPs, and
// bytes over the links.
//
// docs/advice.md has the formula. It orders changes; it does not predict a throughput.
#pragma once

#include <string>

#include "estimator/advise/estimate_cache.h"
#include "estimator/advise/gpu_speed.h"
#include "estimator/job/job.h"
#include "estimator/job/patch.h"

namespace memfathom {

// Seconds of one optimizer step on one GPU, by what it waits for.
struct StepTime {
  double compute = 0;    // products and passes over the activations, launches at the least
  double memory = 0;     // the GPU's own memory: optimizer, accumulation, dequantization
  double gpu_link = 0;   // what of the traffic between GPUs the backward pass does not hide
  double host_link = 0;  // over PCIe
  double host = 0;       // the optimizer on the host
  double samples = 1;

  double total() const { return compute + memory + gpu_link + host_link + host; }
};

// What of a micro-batch's activations counts, in bytes.
struct PassTraffic {
  double written = 0;    // by a forward pass, checkpointed or not
  double offloaded = 0;  // that go to the host
};

StepTime step_time(const Job& job, const Estimate& estimate, const GpuSpeed& speed,
                   const PassTraffic& traffic);

struct TimeCost {
  double factor = 1;  // of the time per sample of the unchanged job
  std::string basis;  // "computing +33 %, host link +8 %"
};

TimeCost compared(const StepTime& before, const StepTime& after);

// Of a variant that can be answered.
TimeCost time_cost(EstimateCache& answers, const Patch& patch);

}  // namespace memfathom
