// Nvml: what NVIDIA's management library tells of cards and processes; opened at run time, never
// linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/environment.h"

namespace memfathom {

struct GpuProcess {
  std::int64_t pid = 0;
  std::string name;           // empty when it may not be asked
  std::optional<Bytes> used;  // unknown on some systems

  bool operator==(const GpuProcess&) const = default;
};

struct GpuStatus {
  std::string name;
  Bytes total, used, free;
  std::optional<Bytes> reserved;  // by the driver itself; old drivers count it as used
  bool ecc = false;
  bool mig = false;
  int compute_capability = 0;  // 80 is sm_80; 0 where it is not told
  std::string driver;
  std::vector<GpuProcess> processes;
};

// Driver, ECC and MIG, which the CUDA runtime does not tell.
void add_to(Environment& environment, const GpuStatus& status);

class Nvml {
 public:
  // Opens $MEMFATHOM_NVML, else libnvidia-ml.so.1. Null, with the reason in `why`, where there is
  // none or it does not start.
  static std::unique_ptr<Nvml> open(std::string* why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int device_count() const;
  // `index` as the CUDA runtime counts, by PCI bus and through CUDA_VISIBLE_DEVICES. Throws
  // Error(kEnvironment).
  GpuStatus status(int index) const;
  Bytes device_used(int index) const;
  std::vector<GpuProcess> processes(int index) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  void* device(int index) const;

  std::unique_ptr<Functions> functions_;
};

// The entry of CUDA_VISIBLE_DEVICES for device `index`: a number or the beginning of a UUID; the
// index itself when `visible` is empty. Nothing when the list is shorter.
std::optional<std::string> visible_device(const std::string& visible, int index);

}  // namespace memfathom
