#include "kernels/devices/dry/dry_device.h"

namespace memfathom {

Environment DryDevice::environment() const {
  Environment environment;
  environment.gpu = "dry";
  environment.architecture = "dry";
  environment.framework = "memfathom";
  return environment;
}

}  // namespace memfathom
