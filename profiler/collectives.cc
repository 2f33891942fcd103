#include "profiler/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/collectives.h"

namespace memfathom {
namespace {

constexpr int kMaxRanks = 64;
constexpr auto kChannels = std::to_array({1, 4, 16});

Workload workload_of(const char* backend, int ranks, std::optional<int> channels) {
  Workload workload;
  workload.family = kCollectivesFamily;
  workload.name = fmt::format("{}/{}/{}-ranks", kCollectivesFamily, backend, ranks);
  if (channels) workload.name += fmt::format("-{}-channels", *channels);
  nlohmann::json job{{"collectives", {{"backend", backend}, {"ranks", ranks}}}};
  job["collectives"]["channels"] = channels ? nlohmann::json(*channels) : nlohmann::json(nullptr);
  workload.job = job.dump();
  return workload;
}

}  // namespace

void add_collectives(DeviceKind kind, int devices, Plan& plan) {
  const bool has_gpus = kind == DeviceKind::kCuda;
  const char* const backend = has_gpus ? "nccl" : "gloo";
  if (devices < 2) {
    plan.left_out.push_back(
        {fmt::format("{}/{}", kCollectivesFamily, backend),
         fmt::format("communicators need two {} or more, and {} {} here",
                     has_gpus ? "GPUs" : "cores", devices, devices == 1 ? "is" : "are")});
    return;
  }
  const int most = std::min(devices, kMaxRanks);
  for (int ranks = 2; ranks < most; ranks *= 2)
    plan.workloads.push_back(workload_of(backend, ranks, std::nullopt));
  plan.workloads.push_back(workload_of(backend, most, std::nullopt));
  if (!has_gpus) return;  // Gloo has no channels
  for (const int channels : kChannels) plan.workloads.push_back(workload_of(backend, 2, channels));
}

}  // namespace memfathom
