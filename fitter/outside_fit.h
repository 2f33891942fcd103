// Outside fit: the published coefficients of core/outside_allocator.h from figures that others
// reported, as a hierarchical model: a common line over the resident threads, with deviations of
// architectures, GPUs and PyTorch releases that shrink to 0 where few points say something.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "core/outside_allocator.h"

namespace memfathom {

// What the process had done when the figure was taken.
enum class OutsideStage { kBare, kComputed, kCommunicated };

// One reported figure.
struct OutsidePoint {
  std::string id;  // for messages: file and line
  OutsideTarget target;
  OutsideStage stage = OutsideStage::kComputed;
  bool used_cudnn = false;
  bool is_guess = false;  // the GPU was guessed, or the figure is hearsay: it counts less
  double bytes = 0;
};

// The points of one GPU, predicted without any of them.
struct HeldOutGpu {
  std::string gpu;  // "sm_80, 108 multiprocessors"
  int points = 0;
  double median_error = 0;  // relative
};

struct OutsideFit {
  Calibration calibration;       // kCurrentStackName; environment and provenance are the caller's
  std::vector<HeldOutGpu> gpus;  // of the lazy points
  double median_error = 0;       // of all lazy points, each GPU left out in turn
  double p90_error = 0;
  int lazy = 0, eager = 0, communicated = 0;
};

// Throws Error(kInput) if the points are too few.
OutsideFit fit_outside(const std::vector<OutsidePoint>& points);

}  // namespace memfathom
