// Any bytes are a tree or an Error, in YAML and in JSON; what is a tree survives the way through
// JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/document.h"
#include "core/error.h"

namespace {

using memfathom::Node;

template <typename Parse>
void try_to(Parse parse, std::string_view text) {
  const memfathom::DocumentLimits limits{.max_tree_bytes = std::size_t{16} << 20};
  try {
    const Node tree = parse(text, "fuzz", 1, limits);
    const nlohmann::json json = memfathom::to_json(tree);
    if (memfathom::to_json(memfathom::parse_json(json.dump(), "again")) != json) std::abort();
  } catch (const memfathom::Error&) {
    // a sentence for the user is a fine answer
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_to(memfathom::parse_yaml, text);
  try_to(memfathom::parse_json, text);
  return 0;
}
