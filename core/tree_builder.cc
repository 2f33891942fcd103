#include "core/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/utf8.h"

namespace memfathom {

void TreeBuilder::check_text(std::string_view text) const {
  if (text.size() > limits_.max_file_bytes) {
    refuse(0, fmt::format("the document has {}; at most {} are read",
                          to_string(Bytes{static_cast<std::int64_t>(text.size())}),
                          to_string(Bytes{static_cast<std::int64_t>(limits_.max_file_bytes)})));
  }
  const std::size_t bad = std::min(find_invalid_utf8(text), text.find('\0'));
  if (bad != std::string_view::npos) {
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    refuse(static_cast<int>(line), "the text is not UTF-8; save the file as UTF-8");
  }
}

void TreeBuilder::start(Node container, int line) {
  if (static_cast<int>(open_.size()) >= limits_.max_depth) {
    refuse(line, fmt::format("the document is nested more than {} levels deep; flatten it",
                             limits_.max_depth));
  }
  locate(container, line);
  open_.push_back({std::move(container), {}, std::nullopt, 0});
}

void TreeBuilder::key(std::string name, int line) {
  Frame& frame = open_.back();
  if (!frame.seen.insert(name).second) {
    refuse(line, fmt::format("the key \"{}\" is duplicated; keep one of them", cut_utf8(name, 60)));
  }
  spend(name.size(), line);
  frame.key = std::move(name);
  frame.key_line = line;
}

const Node& TreeBuilder::finish() {
  Node done = std::move(open_.back().container);
  open_.pop_back();
  return store(std::move(done));
}

void TreeBuilder::repeat(const Node& node, int line) {
  std::size_t longer_path = 0;
  if (!open_.empty()) {
    constexpr std::size_t kBrackets = 22;  // "[n]" of a list's element
    const Frame& frame = open_.back();
    longer_path = frame.container.path_.size() + (frame.key ? frame.key->size() : 0) + kBrackets;
  }
  spend(node.cost(longer_path), line);  // before the copy, which may be huge
  place(node, line);
}

void TreeBuilder::refuse(int line, const std::string& sentence) const {
  const std::string where =
      first_line_ == 0 ? *file_ : fmt::format("{}:{}", *file_, numbered(line));
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", where, sentence));
}

void TreeBuilder::spend(std::size_t bytes, int line) {
  spent_ += bytes;
  if (spent_ <= limits_.max_tree_bytes) return;
  refuse(line,
         fmt::format(
             "the document expands to more than {}; it is too large to be a job or a configuration",
             to_string(Bytes{static_cast<std::int64_t>(limits_.max_tree_bytes)})));
}

// Sets a new node's location: below the innermost open container.
void TreeBuilder::locate(Node& node, int line) {
  if (!node.file_) node.file_ = file_;
  if (node.line_ == 0) node.line_ = numbered(line);
  if (!open_.empty()) {
    const Frame& frame = open_.back();
    if (frame.container.is_map()) {
      node.relocate(frame.container.path_, *frame.key);
      node.line_ = numbered(frame.key_line);
    } else {
      node.relocate_item(frame.container.path_, frame.container.children_.size());
    }
  }
  spend(sizeof(Node) + node.string_.size() + node.path_.size(), line);
}

void TreeBuilder::place(Node node, int line) {
  locate(node, line);
  store(std::move(node));
}

const Node& TreeBuilder::store(Node node) {
  if (open_.empty()) return root_.emplace(std::move(node));
  Frame& frame = open_.back();
  frame.key.reset();
  return frame.container.children_.emplace_back(std::move(node));
}

}  // namespace memfathom
