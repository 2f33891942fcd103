// Any text is a log, with an out-of-memory message or without one; no figure of it is negative.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "estimator/readers/oom_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    memfathom::find_oom_message({reinterpret_cast<const char*>(data), size});
  } catch (const memfathom::Error& error) {
    if (error.kind() == memfathom::ErrorKind::kInternal) std::abort();
  }
  return 0;
}
