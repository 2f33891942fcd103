// TreeBuilder: builds nodes from a parser's events; enforces the limits and rejects duplicate keys.
// Internal to core.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/document.h"

namespace memfathom {

class TreeBuilder {
 public:
  // Lines count from 0 at the start of the text.
  TreeBuilder(const std::string& file, int first_line, const DocumentLimits& limits)
      : file_(std::make_shared<const std::string>(file)),
        first_line_(first_line),
        limits_(limits) {}

  // Throws if the text is too long or not UTF-8.
  void check_text(std::string_view text) const;

  void scalar(Node node, int line) { place(std::move(node), line); }
  void start(Node container, int line);  // an empty list or map
  void key(std::string name, int line);
  const Node& finish();  // closes the innermost list or map and returns it

  // A copy of a node from elsewhere in the document.
  void repeat(const Node& node, int line);
  void spend_copy(const Node& node, int line) { spend(node.cost(0), line); }

  bool expects_key() const {
    return !open_.empty() && open_.back().container.is_map() && !open_.back().key;
  }
  const Node& last() const {
    return open_.empty() ? *root_ : open_.back().container.children_.back();
  }
  bool has_root() const { return root_.has_value(); }
  Node take_root() { return std::move(*root_); }

  [[noreturn]] void refuse(int line, const std::string& sentence) const;

 private:
  struct Frame {
    Node container;
    std::unordered_set<std::string> seen;
    std::optional<std::string> key;  // of the next value
    int key_line;
  };

  void spend(std::size_t bytes, int line);
  void locate(Node& node, int line);
  void place(Node node, int line);
  const Node& store(Node node);
  int numbered(int line) const { return first_line_ == 0 ? 0 : first_line_ + line; }

  std::shared_ptr<const std::string> file_;
  int first_line_;
  DocumentLimits limits_;
  std::vector<Frame> open_;
  std::optional<Node> root_;
  std::size_t spent_ = 0;
};

}  // namespace memfathom
