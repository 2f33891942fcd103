#include "kernels/devices/cpu/versions.h"

namespace memfathom::cpu {

std::string products_version() { return "memfathom " MEMFATHOM_VERSION; }
std::string transforms_version() { return products_version(); }

}  // namespace memfathom::cpu
