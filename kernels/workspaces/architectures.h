// Descriptions of GPUs from public data sheets, as cuDNN wants them to plan for a device that is
// not there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace memfathom {

struct GpuDescription {
  const char* key;   // "a100", unique
  const char* name;  // as the driver names it
  int compute;       // 80 for compute capability 8.0
  int multiprocessors;
  int blocks_per_multiprocessor;
  int threads_per_multiprocessor;
  std::int64_t shared_memory_optin;  // bytes a block can have at most
  std::int64_t memory;
  std::int64_t l2_cache;
  int clock_khz;
  int memory_clock_khz;
};

// All of them; the first of an architecture is what its name alone ("sm_80") stands for.
std::span<const GpuDescription> known_gpus();

// By architecture ("sm_90", "9.0", "90") or key ("h100"). Throws Error(kInput) listing what is
// known.
const GpuDescription& describe_gpu(std::string_view architecture_or_key);

std::string architecture_of(const GpuDescription& gpu);  // "sm_90"

// The architecture whose workspaces stand in for compute capability `capability`: itself where a
// GPU of it is described, else the closest one; of two equally close ones the older.
struct NearestArchitecture {
  std::string architecture;  // "sm_75", as describe_gpu() takes it
  bool differs = false;      // from the one that was asked for
};
NearestArchitecture nearest_known_architecture(int capability);

// cuDNN's JSON text of the device.
std::string to_cudnn_json(const GpuDescription& gpu);

}  // namespace memfathom
