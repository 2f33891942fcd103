// Any bytes are a tree or an Error, as TOML; what is a tree survives the way through JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/document.h"
#include "core/error.h"
#include "core/parse_toml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  const DocumentLimits limits{.max_tree_bytes = std::size_t{16} << 20};
  try {
    const nlohmann::json json =
        to_json(parse_toml({reinterpret_cast<const char*>(data), size}, "fuzz", 1, limits));
    if (to_json(parse_json(json.dump(), "again")) != json) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
