#include "kernels/devices/module_interface.h"

namespace memfathom {

std::uint64_t module_interface() { return MEMFATHOM_MODULE_INTERFACE; }

}  // namespace memfathom
