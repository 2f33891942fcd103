#include "estimator/session/gpus_for_job.h"

#include <string>
#include <utility>

#include "core/parallel_for.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

bool fits(const Estimate& estimate) {
  return estimate.verdict.status == VerdictStatus::kFits ||
         estimate.verdict.status == VerdictStatus::kTight;
}

}  // namespace

std::vector<GpuFit> list_gpus() {
  std::vector<GpuFit> gpus;
  for (const Gpu& gpu : gpus_by_memory()) gpus.push_back({gpu, std::nullopt});
  return gpus;
}

std::vector<GpuFit> gpus_for_job(const JobInput& input, const Estimator& estimator) {
  Node document = input.document;
  for (const char* key : {"memory", "device", "used_by_others"}) {
    const Node* target = document.find("target");
    if (target == nullptr || target->find(key) == nullptr) continue;
    Node changed = *target;
    changed.erase(key);  // describes another GPU
    document.set("target", std::move(changed));
  }
  std::vector<GpuFit> gpus = list_gpus();
  parallel_for(gpus.size(), [&](std::size_t i) {
    Node placed = document;
    placed.assign("target.gpu", Node::string(std::string(gpus[i].gpu.name)));
    gpus[i].estimate = estimator.estimate(read_variant(placed, input.job));
  });
  std::erase_if(gpus, [](const GpuFit& gpu) { return !fits(*gpu.estimate); });
  for (GpuFit& gpu : gpus) input.withhold(gpu.estimate->verdict);
  return gpus;
}

}  // namespace memfathom
