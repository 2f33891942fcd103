#include "core/json_value.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/tree_builder.h"
#include "core/utf8.h"

namespace memfathom {

using nlohmann::json;

json parse_json_value(std::string_view text, const std::string& file,
                      const DocumentLimits& limits) {
  const TreeBuilder tree(file, 0, limits);  // for its limits and its messages
  tree.check_text(text);
  // nlohmann copies, writes and compares values recursively: a deep one must never exist.
  const auto check_depth = [&](int depth, json::parse_event_t event, const json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= limits.max_depth) {
      tree.refuse(0, fmt::format("the document is nested more than {} levels deep; flatten it",
                                 limits.max_depth));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check_depth);
  } catch (const json::exception& failure) {
    std::string_view what = failure.what();
    const std::size_t prefix = what.find("] ");
    if (prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
    // What was read of a string is left out: the file may not have been meant as input.
    what = what.substr(0, what.find("; last read: '\""));
    tree.refuse(0, fmt::format("not valid JSON: {}", cut_utf8(what, 200)));
  }
}

}  // namespace memfathom
