#include "core/parse_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/tree_builder.h"
#include "core/utf8.h"

namespace {

// Thrown where the library finds a text that its own code did not expect.
struct UnexpectedToml {};

constexpr void expect_toml(bool condition) {
  if (!condition) throw UnexpectedToml();
}

}  // namespace

// The header alone, so that nothing is linked. Its checks stay in release builds, where it would
// take them for granted: version 3.3 fails one for "[}", which is a text from outside like any
// other.
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(condition) expect_toml(static_cast<bool>(condition))
#undef NDEBUG
#include <toml++/toml.h>

namespace memfathom {
namespace {

int line_of(const toml::node& node) {
  return std::max(0, static_cast<int>(node.source().begin.line) - 1);
}

// Dates and times are texts here.
Node scalar_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return Node::string(text->get());
  if (const auto* whole = node.as_integer()) return Node::integer(whole->get());
  if (const auto* number = node.as_floating_point()) return Node::number(number->get());
  if (const auto* flag = node.as_boolean()) return Node::boolean(flag->get());
  std::ostringstream text;
  if (const auto* date = node.as_date()) text << date->get();
  if (const auto* time = node.as_time()) text << time->get();
  if (const auto* moment = node.as_date_time()) text << moment->get();
  return Node::string(text.str());
}

// The parser bounds the depth (TOML_MAX_NESTED_VALUES), TreeBuilder the size.
void build(const toml::node& node, TreeBuilder& tree) {
  const int line = line_of(node);
  if (const toml::table* table = node.as_table()) {
    tree.start(Node::map(), line);
    for (const auto& [name, value] : *table) {
      tree.key(std::string(name.str()), line_of(value));
      build(value, tree);
    }
    tree.finish();
  } else if (const toml::array* list = node.as_array()) {
    tree.start(Node::list(), line);
    for (const toml::node& item : *list) build(item, tree);
    tree.finish();
  } else {
    tree.scalar(scalar_of(node), line);
  }
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& file, int first_line,
                const DocumentLimits& limits) {
  TreeBuilder tree(file, first_line, limits);
  tree.check_text(text);
  try {
    const toml::table root = toml::parse(text);
    build(root, tree);
  } catch (const toml::parse_error& failure) {
    const int line = std::max(0, static_cast<int>(failure.source().begin.line) - 1);
    tree.refuse(line, fmt::format("not valid TOML: {}", cut_utf8(failure.description(), 200)));
  } catch (const UnexpectedToml&) {
    tree.refuse(0, "not valid TOML");
  }
  return tree.take_root();
}

}  // namespace memfathom
