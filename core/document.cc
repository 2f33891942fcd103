#include "core/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/tree_builder.h"
#include "core/utf8.h"

namespace memfathom {

namespace {

using nlohmann::json;

// How far the JSON parser has read: its SAX interface tells no positions.
struct Progress {
  int lines = 0;
  char last = '\0';
};

// The position in JSON text; copies share one Progress.
class LineCountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCountingIterator(const char* position, Progress* progress)
      : position_(position), progress_(progress) {}
  reference operator*() const { return *position_; }
  LineCountingIterator& operator++() {
    progress_->last = *position_;
    if (*position_ == '\n') ++progress_->lines;
    ++position_;
    return *this;
  }
  LineCountingIterator operator++(int) {
    LineCountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCountingIterator& other) const { return position_ == other.position_; }
  bool operator!=(const LineCountingIterator& other) const { return position_ != other.position_; }

 private:
  const char* position_;
  Progress* progress_;
};

// nlohmann's SAX interface to TreeBuilder.
class JsonEvents {
 public:
  JsonEvents(TreeBuilder& tree, const Progress& progress) : tree_(tree), progress_(progress) {}

  bool null() { return scalar(Node()); }
  bool boolean(bool value) { return scalar(Node::boolean(value)); }
  bool number_integer(std::int64_t value) { return number(Node::integer(value)); }
  bool number_unsigned(std::uint64_t value) {
    const bool fits = value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    return number(fits ? Node::integer(static_cast<std::int64_t>(value))
                       : Node::number(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return number(Node::number(value)); }
  bool string(std::string& value) { return scalar(Node::string(std::move(value))); }
  bool binary(json::binary_t&) { return false; }  // never sent by the text parser
  bool start_object(std::size_t) { return tree_.start(Node::map(), progress_.lines), true; }
  bool start_array(std::size_t) { return tree_.start(Node::list(), progress_.lines), true; }
  bool key(std::string& name) { return tree_.key(std::move(name), progress_.lines), true; }
  bool end_object() { return tree_.finish(), true; }
  bool end_array() { return tree_.finish(), true; }
  bool parse_error(std::size_t, const std::string&, const json::exception& failure) {
    std::string_view what = failure.what();
    const std::size_t prefix = what.find(": ");
    if (prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
    tree_.refuse(line_of_token(), fmt::format("not valid JSON: {}", cut_utf8(what, 200)));
  }

 private:
  bool scalar(Node node) {
    tree_.scalar(std::move(node), progress_.lines);
    return true;
  }
  bool number(Node node) {
    tree_.scalar(std::move(node), line_of_token());
    return true;
  }
  // The end of a number is only known from the character behind it, which may be the end of the
  // line.
  int line_of_token() const { return progress_.lines - (progress_.last == '\n' ? 1 : 0); }

  TreeBuilder& tree_;
  const Progress& progress_;
};

// Python writes Infinity and NaN into JSON, and model configurations have them; to us they are "no
// value".
std::string without_python_constants(std::string_view text) {
  constexpr std::array<std::string_view, 3> kConstants{"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool in_string = false;
  while (!text.empty()) {
    const auto starts_here = [&](std::string_view constant) { return text.starts_with(constant); };
    const auto* const constant =
        in_string ? kConstants.end()
                  : std::find_if(kConstants.begin(), kConstants.end(), starts_here);
    if (constant != kConstants.end()) {
      out += "null";
      text.remove_prefix(constant->size());
      continue;
    }
    const bool escaped = in_string && text.front() == '\\' && text.size() > 1;
    if (text.front() == '"') in_string = !in_string;
    out += text.substr(0, escaped ? 2 : 1);
    text.remove_prefix(escaped ? 2 : 1);
  }
  return out;
}

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

// A plain scalar by the rules of YAML 1.2's core schema (so "no" and "012" are a string and
// twelve).
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
    const auto as_double = std::from_chars(first, last, value);
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

// yaml-cpp's event interface to TreeBuilder; anchors are kept as copies, since aliases may come
// much later.
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
    // yaml-cpp writes some escapes (\_, \N) as single bytes.
    if (find_invalid_utf8(value) != std::string_view::npos)
      tree_.refuse(mark.line, "an escape in this text is not UTF-8; write the character itself");
    if (tree_.expects_key()) {
      if (anchor != YAML::NullAnchor)
        tree_.refuse(mark.line, "an anchor on a key is not supported; put it on the value");
      if (value == "<<")
        tree_.refuse(mark.line, "merge keys (<<) are not part of YAML 1.2; write the keys out");
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
      tree_.refuse(mark.line, "an alias stands inside its own anchor; write the value out");
    tree_.repeat(found->second, mark.line);
  }

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
    tree_.refuse(mark.line,
                 fmt::format("the tag {} does not suit its value or is not supported; leave it out",
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
};

void check_text(std::string_view text, const TreeBuilder& tree, const DocumentLimits& limits) {
  if (text.size() > limits.max_file_bytes) {
    tree.refuse(0, fmt::format("the document has {}; at most {} are read",
                               to_string(Bytes{static_cast<std::int64_t>(text.size())}),
                               to_string(Bytes{static_cast<std::int64_t>(limits.max_file_bytes)})));
  }
  const std::size_t bad = std::min(find_invalid_utf8(text), text.find('\0'));
  if (bad != std::string_view::npos) {
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    tree.refuse(static_cast<int>(line), "the text is not UTF-8; save the file as UTF-8");
  }
}

std::string read_all(const std::string& path, const DocumentLimits& limits) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw Error(ErrorKind::kInput, fmt::format("{}: cannot be opened; check the path", path));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  std::array<char, 65536> chunk;
  while (stream.read(chunk.data(), chunk.size()), stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limits.max_file_bytes) break;  // the parser says so
  }
  if (stream.bad() || (path != "-" && text.empty() && !stream.eof())) {
    throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; it must be a file", path));
  }
  return text;
}

}  // namespace

Node parse_json(std::string_view text, const std::string& file, int first_line,
                const DocumentLimits& limits) {
  TreeBuilder tree(file, first_line, limits);
  check_text(text, tree, limits);
  std::string rewritten;
  if (text.find("Infinity") != std::string_view::npos ||
      text.find("NaN") != std::string_view::npos) {
    rewritten = without_python_constants(text);
    text = rewritten;
  }
  Progress progress;
  JsonEvents events(tree, progress);
  json::sax_parse(LineCountingIterator(text.data(), &progress),
                  LineCountingIterator(text.data() + text.size(), &progress), &events,
                  json::input_format_t::json, /*strict=*/true,
                  /*ignore_comments=*/true);  // DeepSpeed's reader takes them too
  return tree.take_root();
}

Node parse_yaml(std::string_view text, const std::string& file, int first_line,
                const DocumentLimits& limits) {
  TreeBuilder tree(file, first_line, limits);
  check_text(text, tree, limits);
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
  return tree.take_root();
}

Node parse_document(std::string_view text, const std::string& file, const DocumentLimits& limits) {
  const std::string_view name = file;
  const bool named_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool braced = start != std::string_view::npos && (text[start] == '{' || text[start] == '[');
  const bool is_json = name.ends_with(".json") || (!named_yaml && braced);
  return is_json ? parse_json(text, file, 1, limits) : parse_yaml(text, file, 1, limits);
}

Node load_document(const std::string& path, const DocumentLimits& limits) {
  return parse_document(read_all(path, limits), path == "-" ? "standard input" : path, limits);
}

}  // namespace memfathom
