#include "kernels/workspaces/architectures.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// Turing and newer: what cuDNN 9 for CUDA 13 still plans for. Memory is what the driver reports.
constexpr std::array kGpus{
    GpuDescription{"t4", "Tesla T4", 75, 40, 16, 1024, 65536, 15828320256, 4 * kMiB, 1590000,
                   5001000},
    GpuDescription{"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 32, 2048, 166912, 85100068864,
                   40 * kMiB, 1410000, 1593000},
    GpuDescription{"a6000", "NVIDIA RTX A6000", 86, 84, 16, 1536, 101376, 51041271808, 6 * kMiB,
                   1800000, 8001000},
    GpuDescription{"4090", "NVIDIA GeForce RTX 4090", 89, 128, 24, 1536, 101376, 25393692672,
                   72 * kMiB, 2520000, 10501000},
    GpuDescription{"6000ada", "NVIDIA RTX 6000 Ada Generation", 89, 142, 24, 1536, 101376,
                   51527024640, 96 * kMiB, 2505000, 10001000},
    GpuDescription{"h100", "NVIDIA H100 80GB HBM3", 90, 132, 32, 2048, 232448, 84942979072,
                   50 * kMiB, 1980000, 2619000},
    GpuDescription{"b200", "NVIDIA B200", 100, 148, 32, 2048, 232448, 191514411008, 132644864,
                   1965000, 3996000},
    GpuDescription{"5090", "NVIDIA GeForce RTX 5090", 120, 170, 24, 1536, 101376, 33669185536,
                   96 * kMiB, 2407000, 14001000},
};

// "sm_90", "90" and "9.0" are the same architecture; 0 when it is none of these.
int compute_of(std::string_view text) {
  if (text.starts_with("sm_")) text.remove_prefix(3);
  int value = 0;
  for (const char c : text) {
    if (c == '.') continue;
    if (c < '0' || c > '9' || value > 1000) return 0;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::span<const GpuDescription> known_gpus() { return kGpus; }

const GpuDescription& describe_gpu(std::string_view architecture_or_key) {
  for (const GpuDescription& gpu : kGpus) {
    if (architecture_or_key == gpu.key) return gpu;
  }
  const int compute = compute_of(architecture_or_key);
  std::string known;
  for (const GpuDescription& gpu : kGpus) {
    if (gpu.compute == compute) return gpu;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", architecture_of(gpu), gpu.key);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("no GPU \"{}\" is described for cuDNN's planner; known are {}",
                          architecture_or_key, known));
}

std::string architecture_of(const GpuDescription& gpu) { return fmt::format("sm_{}", gpu.compute); }

NearestArchitecture nearest_known_architecture(int capability) {
  const GpuDescription* nearest = &kGpus.front();
  for (const GpuDescription& gpu : kGpus) {
    if (std::abs(gpu.compute - capability) < std::abs(nearest->compute - capability))
      nearest = &gpu;
  }
  return {architecture_of(*nearest), nearest->compute != capability};
}

std::string to_cudnn_json(const GpuDescription& gpu) {
  return fmt::format(
      R"({{"deviceVer": {}, "multiProcessorCount": {}, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, )"
      R"("maxSharedMemoryPerBlockOptin": {}, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, )"
      R"("maxCtasPerSM": {}, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": {}, "regsPerBlock": 65536, )"
      R"("totalGlobalMem": {}, "smClockRateKHz": {}, "l2CacheSize": {}, "maxBlockSize": [1024, 1024, 64], )"
      R"("memClockRateKHz": {}, "maxGridSize": [2147483647, 65535, 65535], "supportCoopLaunch": 1, "pciDeviceId": 0, )"
      R"("isTccDriver": 0, "cudaDeviceId": 0, "driverVer": 13000, "deviceName": "{}"}})",
      gpu.compute * 10, gpu.multiprocessors, gpu.shared_memory_optin, gpu.blocks_per_multiprocessor,
      gpu.threads_per_multiprocessor, gpu.memory, gpu.clock_khz, gpu.l2_cache, gpu.memory_clock_khz,
      gpu.name);
}

}  // namespace memfathom
