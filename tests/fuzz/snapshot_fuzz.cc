// Fuzz target: any bytes at all as a memory snapshot. Either it is read, or it is refused with one
// sentence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "kernels/memory/trace/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  try {
    const Trace trace =
        read_snapshot(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (trace.events.empty()) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
