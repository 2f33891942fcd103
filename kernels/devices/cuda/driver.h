// Driver: the few driver functions behind expandable segments, found at run time, so that nothing
// links libcuda.
#pragma once

#include <cuda.h>

#include <optional>

namespace memfathom::cuda {

struct Driver {
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
};

// Nothing when the driver lacks one of them.
std::optional<Driver> find_driver();

}  // namespace memfathom::cuda
