// Selftest: every call of a device, and whole layers, held against the reference loops; for
// `memfathom selftest`, for a GPU and for CI.
#pragma once

#include <string>
#include <vector>

#include "kernels/framework/device/device.h"

namespace memfathom {

struct SelftestCase {
  std::string name;       // "gemm bf16 [2, 5, 7] x [2, 7, 3] transposed b"
  double difference = 0;  // the largest |device - reference| / (1 + |reference|)
  double tolerance = 0;
  std::string failure;  // what went wrong when nothing could be compared
  bool passed() const { return failure.empty() && difference <= tolerance; }
};

struct SelftestReport {
  std::string device;
  std::vector<SelftestCase> cases;
  bool passed() const;
  int failures() const;
};

// Runs every kind of call and of layer on small operands with fixed contents. Stops early only when
// the device becomes unusable: the remaining cases then fail with its sentence. The device must
// compute.
SelftestReport compare_with_reference(Device& device);

}  // namespace memfathom
