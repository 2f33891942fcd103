#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/document.h"
#include "core/error.h"
#include "core/key_recorder.h"
#include "core/suggest.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxShownLength = 60;

std::string child_path(const std::string& parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::string at_most_one_line(std::string_view text) {
  const std::string_view start = cut_utf8(text, kMaxShownLength);
  std::string line(start);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return start.size() < text.size() ? line + "..." : line;
}

// One step of a dotted path: a key, or a position in a list.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
};

[[noreturn]] void refuse_path(std::string_view path, std::string_view why) {
  throw Error(
      ErrorKind::kUsage,
      fmt::format("\"{}\" is not a path to a value: {}; write for example training.batch_size or "
                  "model.layers[0].out",
                  path, why));
}

std::vector<Step> split_path(std::string_view path) {
  std::vector<Step> steps;
  std::size_t position = 0;
  while (position <= path.size()) {
    const std::size_t end = std::min(path.find('.', position), path.size());
    std::string_view part = path.substr(position, end - position);
    position = end + 1;
    const std::size_t bracket = std::min(part.find('['), part.size());
    if (bracket == 0) refuse_path(path, "a name is empty");
    steps.push_back({std::string(part.substr(0, bracket)), std::nullopt});
    part.remove_prefix(bracket);
    while (!part.empty()) {
      std::size_t index = 0;
      const char* const last = part.data() + part.size();
      const auto [stop, failure] = std::from_chars(part.data() + 1, last, index);
      if (part.front() != '[' || failure != std::errc{} || stop == last || *stop != ']') {
        refuse_path(path, "a position is not a number in brackets");
      }
      steps.push_back({"", index});
      part.remove_prefix(static_cast<std::size_t>(stop - part.data()) + 1);
    }
  }
  return steps;
}

}  // namespace

Node Node::boolean(bool value) {
  Node node;
  node.type_ = Type::kBool;
  node.bool_ = value;
  return node;
}

Node Node::integer(std::int64_t value) {
  Node node;
  node.type_ = Type::kInt;
  node.int_ = value;
  return node;
}

Node Node::number(double value) {
  Node node;
  node.type_ = Type::kDouble;
  node.double_ = value;
  return node;
}

Node Node::string(std::string value) {
  Node node;
  node.type_ = Type::kString;
  node.string_ = std::move(value);
  return node;
}

Node Node::list() {
  Node node;
  node.type_ = Type::kList;
  return node;
}

Node Node::map() {
  Node node;
  node.type_ = Type::kMap;
  return node;
}

std::string Node::where() const {
  if (!file_ || file_->empty()) return "";
  return line_ > 0 ? fmt::format("{}:{}", *file_, line_) : *file_;
}

std::string Node::shown() const {
  switch (type_) {
    case Type::kNull: return "null";
    case Type::kBool: return bool_ ? "true" : "false";
    case Type::kInt: return fmt::format("{}", int_);
    case Type::kDouble: return fmt::format("{}", double_);
    case Type::kString: return fmt::format("\"{}\"", at_most_one_line(string_));
    case Type::kList: return fmt::format("a list of {}", children_.size());
    case Type::kMap: return "a map";
  }
  return "";
}

void Node::refuse(std::string_view requirement) const {
  const std::string place = where();
  // A document that is nothing but text was not meant as input: it may be a key or a password file,
  // of which no message shows anything.
  const bool is_other_file = path_.empty() && is_string();
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}{}{} is {}; {}", place, place.empty() ? "" : ": ",
                  path_.empty() ? "the document" : fmt::format("\"{}\"", at_most_one_line(path_)),
                  is_other_file ? "plain text" : shown(), requirement));
}

const Node& Node::expect(Type type, std::string_view what) const {
  if (type_ != type) refuse(fmt::format("it must be {}", what));
  return *this;
}

const std::vector<Node>& Node::items() const { return expect(Type::kList, "a list").children_; }
const std::vector<Node>& Node::entries() const {
  return expect(Type::kMap, "a map of keys and values").children_;
}

const Node* Node::find(std::string_view key) const {
  KeyRecorder::note(path_, key);
  const std::vector<Node>& all = entries();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Node& entry) { return entry.key() == key; });
  return found == all.end() ? nullptr : &*found;
}

Node* Node::entry(std::string_view key) {
  const Node* const found = find(key);
  return found == nullptr ? nullptr
                          : &children_[static_cast<std::size_t>(found - children_.data())];
}

const Node& Node::at(std::string_view key) const {
  if (const Node* found = find(key)) return *found;
  const std::string place = where();
  throw Error(ErrorKind::kInput,
              fmt::format("{}{}{} has no key \"{}\"; add it", place, place.empty() ? "" : ": ",
                          path_.empty() ? "the document" : fmt::format("\"{}\"", path_), key));
}

bool Node::as_bool() const { return expect(Type::kBool, "true or false").bool_; }

std::int64_t Node::as_int(std::int64_t least, std::int64_t most) const {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  const bool whole =
      type_ == Type::kDouble && std::trunc(double_) == double_ && std::abs(double_) < kTwoTo63;
  if (type_ != Type::kInt && !whole) refuse("it must be a whole number");
  const std::int64_t value = whole ? static_cast<std::int64_t>(double_) : int_;
  if (value < least) refuse(fmt::format("it must be at least {}", least));
  if (value > most) refuse(fmt::format("it must be at most {}", most));
  return value;
}

double Node::as_number(double least, double most) const {
  const double value = type_ == Type::kInt ? static_cast<double>(int_) : double_;
  if (!is_number() || !std::isfinite(value)) refuse("it must be a number");
  if (value < least) refuse(fmt::format("it must be at least {}", least));
  if (value > most) refuse(fmt::format("it must be at most {}", most));
  return value;
}

const std::string& Node::as_string() const { return expect(Type::kString, "a string").string_; }

Bytes Node::as_bytes() const {
  if (type_ == Type::kInt && int_ == 0) return Bytes{};
  if (is_number()) refuse("a size needs its unit, for example 24GiB, 24GB or 24576MiB");
  if (!is_string()) refuse("it must be a size such as 24GiB, 24GB or 24576MiB");
  try {
    return parse_bytes(string_);
  } catch (const Error&) {
    refuse("it must be a size such as 24GiB, 24GB or 24576MiB");
  }
}

DType Node::as_dtype() const {
  const std::optional<DType> type = is_string() ? parse_dtype(string_) : std::nullopt;
  if (!type) refuse("it must be an element type such as fp32, fp16, bf16, int64 or uint8");
  return *type;
}

std::vector<std::int64_t> Node::as_ints(std::int64_t least, std::int64_t most) const {
  std::vector<std::int64_t> values;
  for (const Node& item : items()) values.push_back(item.as_int(least, most));
  return values;
}

std::size_t Node::as_choice(std::initializer_list<std::string_view> names) const {
  return as_choice(std::span<const std::string_view>(names.begin(), names.size()));
}

std::size_t Node::as_choice(std::span<const std::string_view> names) const {
  const auto found = is_string() ? std::find(names.begin(), names.end(), string_) : names.end();
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto near = is_string() ? nearest_name(string_, names) : std::nullopt;
  refuse(fmt::format("it must be one of {}{}", fmt::join(names, ", "),
                     near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
}

void Node::check_keys(std::initializer_list<std::string_view> known) const {
  check_keys(std::span<const std::string_view>(known.begin(), known.size()));
}

void Node::check_keys(std::span<const std::string_view> known) const {
  for (const Node& entry : entries()) {
    if (std::find(known.begin(), known.end(), entry.key()) != known.end()) continue;
    const std::string place = entry.where();
    throw Error(ErrorKind::kInput,
                fmt::format("{}{}\"{}\" is not a known key{}; {}", place, place.empty() ? "" : ": ",
                            at_most_one_line(entry.key()),
                            path_.empty() ? "" : fmt::format(" of \"{}\"", path_),
                            suggestion(entry.key(), known)));
  }
}

void Node::assign(std::string_view dotted_path, Node value) {
  Node* node = this;
  for (const Step& step : split_path(dotted_path)) {
    if (step.index) {
      const std::size_t count = node->items().size();
      if (*step.index >= count) {
        refuse_path(dotted_path, fmt::format("\"{}\" has {} elements", node->path_, count));
      }
      node = &node->children_[*step.index];
      continue;
    }
    if (node->is_null()) node->type_ = Type::kMap;
    if (node->find(step.key) == nullptr) {
      Node made;
      made.file_ = value.file_;
      made.line_ = value.line_;
      node->set(step.key, std::move(made));
    }
    node = node->entry(step.key);
  }
  value.key_offset_ = node->key_offset_;
  value.path_ = node->path_;
  value.relocate_children();
  *node = std::move(value);
}

void Node::append(Node value) {
  value.relocate_item(path_, items().size());
  children_.push_back(std::move(value));
}

void Node::set(std::string_view key, Node value) {
  value.relocate(path_, key);
  if (Node* const existing = entry(key)) {
    *existing = std::move(value);
  } else {
    children_.push_back(std::move(value));
  }
}

void Node::erase(std::string_view key) {
  if (const Node* found = find(key))
    children_.erase(children_.begin() + (found - children_.data()));
}

bool Node::same_value(const Node& other) const {
  if (type_ != other.type_ || children_.size() != other.children_.size()) return false;
  if (is_map()) {
    return std::all_of(children_.begin(), children_.end(), [&](const Node& entry) {
      const Node* const twin = other.find(entry.key());
      return twin != nullptr && entry.same_value(*twin);
    });
  }
  return bool_ == other.bool_ && int_ == other.int_ && string_ == other.string_ &&
         (double_ == other.double_ || (std::isnan(double_) && std::isnan(other.double_))) &&
         std::equal(children_.begin(), children_.end(), other.children_.begin(),
                    [](const Node& a, const Node& b) { return a.same_value(b); });
}

void Node::relocate(const std::string& parent_path, std::string_view key) {
  path_ = child_path(parent_path, key);
  key_offset_ = static_cast<std::uint32_t>(path_.size() - key.size());
  relocate_children();
}

void Node::relocate_item(const std::string& parent_path, std::size_t index) {
  path_ = fmt::format("{}[{}]", parent_path, index);
  key_offset_ = 0;
  relocate_children();
}

void Node::relocate_children() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (is_map()) {
      const std::string key(children_[i].key());
      children_[i].relocate(path_, key);
    } else {
      children_[i].relocate_item(path_, i);
    }
  }
}

std::size_t Node::cost(std::size_t longer_path) const {
  std::size_t total = sizeof(Node) + string_.size() + path_.size() + longer_path;
  for (const Node& child : children_) total += child.cost(longer_path);
  return total;
}

}  // namespace memfathom
