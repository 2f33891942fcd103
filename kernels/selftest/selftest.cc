#include "kernels/selftest/selftest.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/selftest/harness.h"

namespace memfathom {

int SelftestReport::failures() const {
  return static_cast<int>(
      std::count_if(cases.begin(), cases.end(), [](const SelftestCase& c) { return !c.passed(); }));
}

bool SelftestReport::passed() const { return !cases.empty() && failures() == 0; }

SelftestReport compare_with_reference(Device& device) {
  if (!device.computes()) {
    throw Error(ErrorKind::kInput,
                "selftest: the device " + device.name() + " does not compute; use cpu or cuda:0");
  }
  selftest::Harness harness(device);
  selftest::elementwise_cases(harness);
  selftest::row_cases(harness);
  selftest::norm_cases(harness);
  selftest::plane_cases(harness);
  selftest::attention_cases(harness);
  selftest::gemm_cases(harness);
  selftest::convolution_cases(harness);
  selftest::fft_cases(harness);
  return harness.take();
}

}  // namespace memfathom
