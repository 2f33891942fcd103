// parse_json: parses JSON into a tree with nlohmann's SAX interface.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/tree_builder.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

using nlohmann::json;

// How far the JSON parser has read: its SAX interface reports no positions.
struct ReadSoFar {
  int lines = 0;
  char last = '\0';
};

// The position in JSON text; copies share one ReadSoFar.
class LineCountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCountingIterator(const char* position, ReadSoFar* so_far)
      : position_(position), so_far_(so_far) {}
  reference operator*() const { return *position_; }
  LineCountingIterator& operator++() {
    so_far_->last = *position_;
    if (*position_ == '\n') ++so_far_->lines;
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
  ReadSoFar* so_far_;
};

// Python writes Infinity and NaN into JSON, also in model configurations. The parser gets each as a
// string that begins with a mark, a control character that the text has in no string; in the tree
// they are numbers, which no reader takes for a size.
constexpr char kNoMark = '\0';

Node python_number(std::string_view constant) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (constant == "NaN") return Node::number(std::numeric_limits<double>::quiet_NaN());
  return Node::number(constant == "-Infinity" ? -kInfinity : kInfinity);
}

std::string escaped(char mark) { return fmt::format("\\u{:04x}", static_cast<unsigned>(mark)); }

// Control characters stand in JSON's strings as \u and four digits only.
char unused_mark(std::string_view text) {
  for (char mark = 1; mark < 8; ++mark) {
    if (text.find(escaped(mark)) == std::string_view::npos) return mark;
  }
  return kNoMark;
}

// nlohmann's SAX interface to TreeBuilder.
class JsonEvents {
 public:
  JsonEvents(TreeBuilder& tree, const ReadSoFar& so_far, char mark)
      : tree_(tree), so_far_(so_far), mark_(mark) {}

  bool null() { return scalar(Node()); }
  bool boolean(bool value) { return scalar(Node::boolean(value)); }
  bool number_integer(std::int64_t value) { return number(Node::integer(value)); }
  bool number_unsigned(std::uint64_t value) {
    const bool fits = value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    return number(fits ? Node::integer(static_cast<std::int64_t>(value))
                       : Node::number(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return number(Node::number(value)); }
  bool string(std::string& value) {
    if (mark_ != kNoMark && value.starts_with(mark_))
      return number(python_number(std::string_view(value).substr(1)));
    return scalar(Node::string(std::move(value)));
  }
  bool binary(json::binary_t&) { return false; }  // never sent by the text parser
  bool start_object(std::size_t) { return tree_.start(Node::map(), so_far_.lines), true; }
  bool start_array(std::size_t) { return tree_.start(Node::list(), so_far_.lines), true; }
  bool key(std::string& name) { return tree_.key(std::move(name), so_far_.lines), true; }
  bool end_object() { return tree_.finish(), true; }
  bool end_array() { return tree_.finish(), true; }
  bool parse_error(std::size_t, const std::string&, const json::exception& failure) {
    std::string_view what = failure.what();
    const std::size_t prefix = what.find(": ");
    if (prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
    // What was read of a string is left out: the file may not have been meant as input.
    what = what.substr(0, what.find("; last read: '\""));
    tree_.refuse(line_of_token(), fmt::format("not valid JSON: {}", cut_utf8(what, 200)));
  }

 private:
  bool scalar(Node node) {
    tree_.scalar(std::move(node), so_far_.lines);
    return true;
  }
  bool number(Node node) {
    tree_.scalar(std::move(node), line_of_token());
    return true;
  }
  // A number ends before the next character, which the parser has read already and may be a
  // newline.
  int line_of_token() const { return so_far_.lines - (so_far_.last == '\n' ? 1 : 0); }

  TreeBuilder& tree_;
  const ReadSoFar& so_far_;
  char mark_;
};

std::string with_quoted_constants(std::string_view text, char mark) {
  constexpr std::array<std::string_view, 3> kConstants{"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool in_string = false;
  while (!text.empty()) {
    const auto starts_here = [&](std::string_view constant) { return text.starts_with(constant); };
    const auto* const constant =
        in_string ? kConstants.end()
                  : std::find_if(kConstants.begin(), kConstants.end(), starts_here);
    if (constant != kConstants.end()) {
      out += '"' + escaped(mark);
      out += *constant;
      out += '"';
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

}  // namespace

Node parse_json(std::string_view text, const std::string& file, int first_line,
                const DocumentLimits& limits) {
  TreeBuilder tree(file, first_line, limits);
  tree.check_text(text);
  std::string rewritten;
  char mark = kNoMark;
  if (text.find("Infinity") != std::string_view::npos ||
      text.find("NaN") != std::string_view::npos) {
    mark = unused_mark(text);
    if (mark != kNoMark) rewritten = with_quoted_constants(text, mark);
    if (mark != kNoMark) text = rewritten;  // else they are no JSON, as the parser then says
  }
  ReadSoFar so_far;
  JsonEvents events(tree, so_far, mark);
  json::sax_parse(LineCountingIterator(text.data(), &so_far),
                  LineCountingIterator(text.data() + text.size(), &so_far), &events,
                  json::input_format_t::json, /*strict=*/true,
                  /*ignore_comments=*/true);  // DeepSpeed's reader accepts them too
  return tree.take_root();
}

}  // namespace memfathom
