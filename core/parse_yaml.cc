// parse_yaml: parses YAML 1.2 into a tree with yaml-cpp's events.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "core/from_chars_real.h"
#include "core/tree_builder.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

bool only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kDigits = "0123456789";

std::optional<Node> based_integer(std::string_view digits, int base, std::string_view allowed) {
  if (!only(digits, allowed)) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return failure == std::errc{} ? std::optional(Node::integer(value)) : std::nullopt;
}

// [-+]? ( . digits | digits ( . digits? )? ) ( e [-+]? digits )?
bool is_decimal(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (!power.empty() && (power.front() == '-' || power.front() == '+')) power.remove_prefix(1);
    if (!only(power, kDigits)) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return only(text, kDigits);
  const std::string_view before = text.substr(0, point);
  const std::string_view after = text.substr(point + 1);
  return (before.empty() || only(before, kDigits)) && (after.empty() || only(after, kDigits)) &&
         !(before.empty() && after.empty());
}

// A plain scalar by the rules of YAML 1.2's core schema ("no" is a string and "012" is twelve).
Node plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return Node();
  if (text == "true" || text == "True" || text == "TRUE") return Node::boolean(true);
  if (text == "false" || text == "False" || text == "FALSE") return Node::boolean(false);
  if (text.starts_with("0x")) {
    if (auto node = based_integer(std::string_view(text).substr(2), 16, "0123456789abcdefABCDEF"))
      return *node;
  }
  if (text.starts_with("0o")) {
    if (auto node = based_integer(std::string_view(text).substr(2), 8, "01234567")) return *node;
  }
  if (is_decimal(text)) {
    const char* const first = text.data() + (text.front() == '+' ? 1 : 0);
    const char* const last = text.data() + text.size();
    std::int64_t whole = 0;
    const auto as_whole = std::from_chars(first, last, whole);
    if (as_whole.ec == std::errc{} && as_whole.ptr == last) return Node::integer(whole);
    double value = 0;
    const auto as_double = from_chars_real(first, last, value);
    if (as_double.ec == std::errc{} && as_double.ptr == last) return Node::number(value);
    return Node::string(text);  // out of the range of doubles
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == ".inf" || text == ".Inf" || text == ".INF" || text == "+.inf")
    return Node::number(kInfinity);
  if (text == "-.inf" || text == "-.Inf" || text == "-.INF") return Node::number(-kInfinity);
  if (text == ".nan" || text == ".NaN" || text == ".NAN")
    return Node::number(std::numeric_limits<double>::quiet_NaN());
  return Node::string(text);
}

constexpr std::string_view kMergeKey = "<<";

// yaml-cpp's event interface to TreeBuilder; anchors are copied, because aliases may come much
// later.
class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(TreeBuilder& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (tree_.has_root())
      tree_.refuse(mark.line, "a second document starts here; keep one document in a file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (tree_.expects_key()) tree_.refuse(mark.line, "a key is empty; give it a name");
    tree_.scalar(Node(), mark.line);
    keep(anchor, tree_.last(), mark.line);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // yaml-cpp decodes some escapes (\_, \N) as single bytes.
    if (find_invalid_utf8(value) != std::string_view::npos)
      tree_.refuse(mark.line, "an escape in this text is not UTF-8; write the character itself");
    if (tree_.expects_key()) {
      if (anchor != YAML::NullAnchor)
        tree_.refuse(mark.line, "an anchor on a key is not supported; put it on the value");
      has_merge_keys_ = has_merge_keys_ || value == kMergeKey;
      tree_.key(value, mark.line);
      return;
    }
    tree_.scalar(tagged_scalar(tag, value, mark), mark.line);
    keep(anchor, tree_.last(), mark.line);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(Node::list(), mark, tag, "tag:yaml.org,2002:seq", anchor);
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(Node::map(), mark, tag, "tag:yaml.org,2002:map", anchor);
  }
  void OnMapEnd() override { finish(); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (tree_.expects_key()) tree_.refuse(mark.line, "an alias cannot be a key; write the key out");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      tree_.refuse(mark.line, "an alias refers to its own anchor; write the value out");
    tree_.repeat(found->second, mark.line);
  }

  bool has_merge_keys() const { return has_merge_keys_; }

 private:
  struct Open {
    YAML::anchor_t anchor;
    int line;
  };

  Node tagged_scalar(const std::string& tag, const std::string& value,
                     const YAML::Mark& mark) const {
    if (tag == "?" || tag.empty()) return plain_scalar(value);
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Node::string(value);
    Node node = plain_scalar(value);
    if (tag == "tag:yaml.org,2002:int" && node.is_int()) return node;
    if (tag == "tag:yaml.org,2002:float" && node.is_number()) return Node::number(node.as_number());
    if (tag == "tag:yaml.org,2002:bool" && node.is_bool()) return node;
    if (tag == "tag:yaml.org,2002:null" && node.is_null()) return node;
    tree_.refuse(
        mark.line,
        fmt::format("the tag {} does not match its value or is not supported; leave it out",
                    cut_utf8(tag, 60)));
  }

  void start(Node container, const YAML::Mark& mark, const std::string& tag,
             std::string_view own_tag, YAML::anchor_t anchor) {
    if (tree_.expects_key())
      tree_.refuse(mark.line, "a list or a map cannot be a key; use a plain name");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != own_tag) {
      tree_.refuse(mark.line,
                   fmt::format("the tag {} is not supported; leave it out", cut_utf8(tag, 60)));
    }
    tree_.start(std::move(container), mark.line);
    open_.push_back({anchor, mark.line});
  }
  void finish() {
    const Open open = open_.back();
    open_.pop_back();
    keep(open.anchor, tree_.finish(), open.line);
  }
  void keep(YAML::anchor_t anchor, const Node& node, int line) {
    if (anchor == YAML::NullAnchor) return;
    tree_.spend_copy(node, line);
    anchors_[anchor] = node;
  }

  TreeBuilder& tree_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  bool has_merge_keys_ = false;
};

// Adds what `map` does not say itself.
void merge_into(Node& map, const Node& added) {
  constexpr std::size_t kMaxMerged = 1000;  // entries; each is looked up among the others
  if (!added.is_map())
    added.refuse("a merge key (<<) takes a map, or a list of maps, as *anchor names one");
  for (const Node& entry : added.entries()) {
    if (map.entries().size() > kMaxMerged)
      entry.refuse(fmt::format("a map with a merge key (<<) has more than {} entries", kMaxMerged));
    if (map.find(entry.key()) == nullptr) map.set(entry.key(), entry);
  }
}

// Puts the entries that merge keys name (<< of YAML 1.1, which Python's tools read) in their place:
// those of the map itself win, then those of the first map of a list.
Node with_merged_maps(const Node& node) {
  if (node.is_list()) {
    Node list = Node::list();
    for (const Node& item : node.items()) list.append(with_merged_maps(item));
    return list;
  }
  if (!node.is_map()) return node;
  Node map = node;
  for (const Node& entry : node.entries()) {
    if (entry.key() != kMergeKey) map.set(entry.key(), with_merged_maps(entry));
  }
  const Node* merged = node.find(kMergeKey);
  if (merged == nullptr) return map;
  map.erase(kMergeKey);
  const Node added = with_merged_maps(*merged);
  if (added.is_list()) {
    for (const Node& item : added.items()) merge_into(map, item);
  } else {
    merge_into(map, added);
  }
  return map;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file, int first_line,
                const DocumentLimits& limits) {
  TreeBuilder tree(file, first_line, limits);
  tree.check_text(text);
  YamlEvents events(tree);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& failure) {
    tree.refuse(std::max(failure.mark.line, 0), fmt::format("not valid YAML: {}", failure.msg));
  }
  if (!tree.has_root()) tree.refuse(0, "the document is empty");
  Node root = tree.take_root();
  return events.has_merge_keys() ? with_merged_maps(root) : root;
}

}  // namespace memfathom
