// Any text is a message to or from a probe, or an Error. A message that was read is written and
// read back unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "profiler/probe_message.h"

namespace {

template <typename Read>
void try_to(Read read, std::string_view text) {
  using namespace memfathom;
  std::string message;
  try {
    message = to_message(read(text));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
    return;
  }
  if (to_message(read(message)) != message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_to(memfathom::request_from, text);
  try_to(memfathom::reply_from, text);
  return 0;
}
