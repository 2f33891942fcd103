// Nvml: what NVIDIA's management library tells of GPUs and processes; opened at run time, never
// linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/environment.h"
#include "core/live_gpu.h"

namespace memfathom {

struct NvmlLibrary;

struct GpuStatus {
  std::string name;
  Bytes total, used, free;
  std::optional<Bytes> reserved;  // by the driver itself; old drivers count it as used
  bool ecc = false;
  bool mig = false;            // the figures are then those of one instance of the GPU
  int compute_capability = 0;  // 80 is sm_80; 0 where it is not told
  std::string driver;
  std::vector<GpuProcess> processes;
};

// Driver, ECC and MIG, which the CUDA runtime does not tell.
void add_gpu_status(Environment& environment, const GpuStatus& status);

class Nvml {
 public:
  // Opens $MEMFATHOM_NVML, else libnvidia-ml.so.1. Null, with the reason in `why`, where there is
  // none or it does not start.
  static std::unique_ptr<Nvml> open(std::string* why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // GPUs are counted as the CUDA runtime counts them by PCI bus: through CUDA_VISIBLE_DEVICES, and
  // of a GPU that is divided (MIG) its first instance. The rest throws Error(kEnvironment) where
  // there is no such GPU.
  int device_count() const;
  GpuStatus status(int index) const;
  Bytes device_used(int index) const;
  // Empty where the driver does not tell this user.
  std::vector<GpuProcess> processes(int index) const;

 private:
  explicit Nvml(std::unique_ptr<NvmlLibrary> library);
  std::vector<GpuProcess> processes_on(void* device) const;

  std::unique_ptr<NvmlLibrary> library_;
};

}  // namespace memfathom
