// Driver: the driver functions for expandable segments and the loading mode, found at run time so
// that libcuda is not linked.
#pragma once

#include <cuda.h>

#include <optional>
#include <string>

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

// "lazy" or "eager": when kernels are loaded. Empty if the driver cannot tell (before 11.7). Needs
// an initialised driver.
std::string module_loading_mode();

}  // namespace memfathom::cuda
