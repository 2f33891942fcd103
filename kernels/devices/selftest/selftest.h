// Selftest: compares every call of a device, and whole layers, with the reference loops; for
// `memfathom selftest`, GPUs and CI.
#pragma once

#include <string>
#include <vector>

#include "kernels/framework/device/device.h"

namespace memfathom {

struct SelftestCase {
  std::string name;       // "gemm bf16 [2, 5, 7] x [2, 7, 3] transposed b"
  double difference = 0;  // the largest |device - reference| / (1 + |reference|)
  double tolerance = 0;
  std::string failure;  // the error if nothing could be compared
  bool passed() const { return failure.empty() && difference <= tolerance; }
};

struct SelftestReport {
  std::string device;
  std::vector<SelftestCase> cases;
  bool passed() const;
  int failures() const;
};

// Runs every kind of call and layer on small operands with fixed contents. If the device becomes
// unusable, the remaining cases fail with its message. The device must compute.
SelftestReport compare_with_reference(Device& device);

}  // namespace memfathom
