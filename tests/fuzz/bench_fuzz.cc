// Any text is a bench file or an Error; what was read is written and read back unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "profiler/regression/bench_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  BenchFile read;
  try {
    read = bench_file_from({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
    return 0;
  }
  const std::string text = to_text(read);
  if (to_text(bench_file_from(text, "again")) != text) std::abort();
  return 0;
}
