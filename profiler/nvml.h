// Nvml: GPU and process information from NVIDIA's management library, loaded at run time.
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
  bool shares_system_memory = false;  // these are the system's then, from /proc/meminfo
  std::optional<Bytes> reserved;      // by the driver; old drivers include it in `used`
  bool ecc = false;
  bool mig = false;            // the values are then those of one MIG instance
  int compute_capability = 0;  // 80 is sm_80; 0: unknown
  std::string driver;
  std::vector<GpuProcess> processes;
};

// Driver, ECC and MIG, which the CUDA runtime does not report.
void add_gpu_status(Environment& environment, const GpuStatus& status);

class Nvml {
 public:
  // Opens $MEMFATHOM_NVML, else libnvidia-ml.so.1. Returns null and sets `why` if the library is
  // missing or fails to initialize.
  static std::unique_ptr<Nvml> open(std::string* why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // GPUs are numbered as CUDA does, by PCI bus and filtered by CUDA_VISIBLE_DEVICES; a GPU in MIG
  // mode counts as its first instance. Throws Error(kEnvironment) if there is no such GPU.
  int device_count() const;
  GpuStatus status(int index) const;
  // Nullopt for GPUs that share the system's memory: they do not report it.
  std::optional<Bytes> device_used(int index) const;
  // Empty if the driver does not report processes to this user.
  std::vector<GpuProcess> processes(int index) const;

  // A GPU that was looked up once, for many readings a second; valid as long as this object.
  class Gpu {
   public:
    std::optional<Bytes> used() const;          // as device_used()
    std::vector<GpuProcess> processes() const;  // without names, which cost a call each

   private:
    friend class Nvml;
    Gpu(const Nvml& nvml, void* device) : nvml_(nvml), device_(device) {}
    const Nvml& nvml_;
    void* device_;
  };
  Gpu gpu(int index) const;

 private:
  explicit Nvml(std::unique_ptr<NvmlLibrary> library);
  std::vector<GpuProcess> processes_on(void* device, bool with_names) const;

  std::unique_ptr<NvmlLibrary> library_;
};

}  // namespace memfathom
