// Driver: the driver functions for expandable segments, found at run time so that libcuda is not
// linked.
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

// Nullopt if the driver lacks one of them.
std::optional<Driver> find_driver();

}  // namespace memfathom::cuda
