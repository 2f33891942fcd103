// GpuSpeed: how fast a GPU computes and moves bytes, as its data sheet says.
#pragma once

#include <string>

#include "estimator/job/job.h"

namespace memfathom {

// Rates that a program can expect: the data sheet's, times the share that programs attain.
struct GpuSpeed {
  std::string name;  // of the GPU whose data sheet it is
  bool has_tensor_cores = true;
  bool is_stand_in = false;  // the target is unknown or has no entry: another GPU's figures
  double flops_16_bit = 0;   // per second
  double flops_32_bit = 0;   // per second, without TF32, which PyTorch leaves off
  double memory = 0;         // bytes per second, of the GPU's own memory
  double gpu_link = 0;       // bytes per second and direction, to the other GPUs
  double host_link = 0;      // bytes per second and direction, to the host
  double host_memory = 0;    // bytes per second, of one host

  // The rates in one sentence, with their source.
  std::string sentence() const;
};

GpuSpeed gpu_speed(const Job& job);

}  // namespace memfathom
