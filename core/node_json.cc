#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/document.h"
#include "core/tree_builder.h"

namespace memfathom {
namespace {

using nlohmann::json;

void feed(TreeBuilder& tree, const json& value) {
  switch (value.type()) {
    case json::value_t::boolean: return tree.scalar(Node::boolean(value.get<bool>()), 0);
    case json::value_t::number_integer:
      return tree.scalar(Node::integer(value.get<std::int64_t>()), 0);
    case json::value_t::number_unsigned: {
      const bool fits =
          value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      return tree.scalar(
          fits ? Node::integer(value.get<std::int64_t>()) : Node::number(value.get<double>()), 0);
    }
    case json::value_t::number_float: return tree.scalar(Node::number(value.get<double>()), 0);
    case json::value_t::string: return tree.scalar(Node::string(value.get<std::string>()), 0);
    case json::value_t::array:
      tree.start(Node::list(), 0);
      for (const json& item : value) feed(tree, item);
      tree.finish();
      return;
    case json::value_t::object:
      tree.start(Node::map(), 0);
      for (const auto& [key, item] : value.items()) {
        tree.key(key, 0);
        feed(tree, item);
      }
      tree.finish();
      return;
    default: return tree.scalar(Node(), 0);
  }
}

}  // namespace

json to_json(const Node& node) {
  switch (node.type()) {
    case Node::Type::kNull: return nullptr;
    case Node::Type::kBool: return node.as_bool();
    case Node::Type::kInt: return node.as_int();
    case Node::Type::kDouble:
      return std::isfinite(node.unchecked_number()) ? json(node.unchecked_number()) : json(nullptr);
    case Node::Type::kString: return node.as_string();
    case Node::Type::kList: {
      json list = json::array();
      for (const Node& item : node.items()) list.push_back(to_json(item));
      return list;
    }
    case Node::Type::kMap: {
      json map = json::object();
      for (const Node& entry : node.entries()) map[std::string(entry.key())] = to_json(entry);
      return map;
    }
  }
  return nullptr;
}

Node node_from_json(const json& value, const std::string& file) {
  TreeBuilder tree(file, 0, DocumentLimits{});
  feed(tree, value);
  return tree.take_root();
}

}  // namespace memfathom
