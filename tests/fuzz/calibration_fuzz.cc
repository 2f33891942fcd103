// Any text is a calibration file or an Error; what was read is written and read back unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "db/calibration_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  Calibration read;
  try {
    read = from_calibration_file({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
    return 0;
  }
  const Calibration again = from_calibration_file(to_calibration_file(read), "again");
  if (again.id != read.id || content_id(again) != read.id) std::abort();
  return 0;
}
