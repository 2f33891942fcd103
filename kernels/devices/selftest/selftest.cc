#include "kernels/devices/selftest/selftest.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/devices/selftest/harness.h"
#include "kernels/devices/selftest/layers.h"
#include "kernels/devices/selftest/reference_device.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom {
namespace {

SelftestCase compare_layer(Device& device, const selftest::LayerCase& layer_case) {
  SelftestCase result{"layer " + layer_case.name, 0, layer_case.tolerance, ""};
  const auto run_on = [&](Device& where) {
    CachingAllocator allocator(where.memory());
    Session session(where, allocator, where.workspaces(), FrameworkPolicy{});
    return selftest::run_layer(session, layer_case);
  };
  try {
    selftest::ReferenceDevice reference;
    result.difference = selftest::largest_difference(run_on(device), run_on(reference));
  } catch (const Error& error) {
    result.failure = error.what();
  }
  return result;
}

}  // namespace

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
  selftest::team_cases(harness);
  SelftestReport report = harness.take();
  for (const selftest::LayerCase& layer_case : selftest::layer_cases())
    report.cases.push_back(compare_layer(device, layer_case));
  return report;
}

}  // namespace memfathom
