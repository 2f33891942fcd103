// A module of another build: only its interface number is different.
#include "kernels/devices/module_interface.h"

extern "C" std::uint64_t memfathom_cpu_interface() { return memfathom::module_interface() + 1; }
