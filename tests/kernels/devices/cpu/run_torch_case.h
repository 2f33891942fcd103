// run_torch_case: makes the calls of a case on a device and returns what it wrote, by the names of
// the case's outputs.
#pragma once

#include "kernels/devices/reference/reference.h"
#include "kernels/framework/device/device.h"
#include "tests/kernels/devices/cpu/torch_cases.h"

namespace memfathom::testing {

// The reference under the name that devices have for it.
struct ReferenceRunner {
  template <typename Call>
  void run(const Call& call) {
    run_reference(call);
  }
};

using Results = std::map<std::string, HostTensor>;

Results run_torch_case(const TorchCase& c, ReferenceRunner& device);
Results run_torch_case(const TorchCase& c, Device& device);

}  // namespace memfathom::testing
