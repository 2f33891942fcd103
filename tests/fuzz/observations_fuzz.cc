// Any bytes are observations, as CSV or as JSON lines, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "cli/observe/observation_file.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  try {
    for (const Observation& one : read_observations(input, "/nonexistent/fuzz.csv", {})) {
      if (one.job.empty() || (one.bytes && one.bytes->count() <= 0)) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
