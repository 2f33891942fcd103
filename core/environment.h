// Environment: the hardware and software that a measurement belongs to.
#pragma once

#include <string>

#include "core/bytes.h"
#include "core/device_kind.h"

namespace memfathom {

struct Environment {
  std::string gpu;           // "NVIDIA A100-SXM4-40GB", "AMD EPYC 7B13 (cpu)", "virtual:NAME"
  std::string architecture;  // "sm_80", "x86_64", "virtual", "dry"
  Bytes memory_total;
  bool ecc = false;
  std::string mig;  // the MIG profile, empty when off
  std::string driver;
  std::string cuda;
  std::string cublas;
  std::string cudnn;
  std::string cufft;
  std::string module_loading;  // how CUDA loads kernels: "lazy" or "eager"; empty: not known
  std::string framework;       // "memfathom" (our own layers) or "pytorch"
  std::string framework_version;
  std::string os;

  bool operator==(const Environment&) const = default;

  // Derived from `gpu` and `architecture`, which are stored. Throws Error(kInput) for an unknown
  // kind of device.
  DeviceKind kind() const;
  bool is_virtual() const { return architecture == "virtual"; }
  // The hardware: GPU, architecture, memory, ECC, MIG. Baselines are compared only within it.
  std::string device_key() const;
  // The software: driver, libraries, framework. A calibration is stale if it differs.
  std::string stack_key() const;
};

}  // namespace memfathom
