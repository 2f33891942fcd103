#include "estimator/command_line/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.h"
#include "estimator/command_line/shell_arithmetic.h"

namespace memfathom {
namespace {

// Around an unresolved part of a text, while it is assigned and split: kOpen NAME kClose.
constexpr char kOpen = '\x01';
constexpr char kClose = '\x02';
constexpr std::size_t kMaxNotes = 20;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string without_marks(std::string_view script) {
  std::string clean(script);
  std::replace(clean.begin(), clean.end(), kOpen, '?');
  std::replace(clean.begin(), clean.end(), kClose, '?');
  return clean;
}

std::string unresolved(std::string_view name) { return kOpen + without_marks(name) + kClose; }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool is_shell_name(std::string_view text) {
  return !text.empty() && is_name_start(text.front()) &&
         std::all_of(text.begin(), text.end(), is_name_part);
}

ShellWord finished(std::string_view text) {
  ShellWord word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kOpen) {
      word.text += text[i];
      continue;
    }
    const std::size_t end = std::min(text.find(kClose, i), text.size());
    const std::string name(text.substr(i + 1, end - i - 1));
    word.text += is_shell_name(name) ? "$" + name : name;
    if (std::find(word.unresolved.begin(), word.unresolved.end(), name) == word.unresolved.end())
      word.unresolved.push_back(name);
    i = end;
  }
  return word;
}

Assignment assignment_in(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return {};
  const bool appends = text[equals - 1] == '+';
  const std::string_view name = text.substr(0, equals - (appends ? 1 : 0));
  if (!is_shell_name(name)) return {};
  return {std::string(name), appends, equals + 1};
}

void ShellWords::note(std::string text) {
  if (notes_.size() < kMaxNotes) notes_.push_back(fmt::format("{}:{}: {}", file_, line_, text));
}

void ShellWords::forget(const std::string& name) { variables_.erase(name); }

void ShellWords::advance() {
  if (peek() == '\n') ++line_;
  ++at_;
}

void ShellWords::refuse(std::string_view reason) const {
  throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", file_, line_, reason));
}

void ShellWords::count(std::size_t bytes) {
  expanded_ += bytes;
  if (expanded_ > limits_.max_expanded_bytes)
    refuse(
        fmt::format("the script's variables expand to more than {} bytes; give one command "
                    "after -- instead",
                    limits_.max_expanded_bytes));
}

bool ShellWords::skip_continuation() {
  if (peek() != '\\') return false;
  std::size_t ahead = 1;
  while (is_blank(peek(ahead))) ++ahead;
  if (peek(ahead) != '\n') return false;
  while (peek() != '\n') ++at_;
  advance();
  return true;
}

void ShellWords::skip_blanks() {
  while (!at_end()) {
    if (is_blank(peek())) {
      ++at_;
    } else if (!skip_continuation()) {
      return;
    }
  }
}

void ShellWords::skip_comment() {
  while (!at_end() && peek() != '\n') ++at_;
}

void ShellWords::assign(const std::string& name, Values values) {
  for (const std::string& value : values) count(value.size() + 1);
  const auto known = variables_.find(name);
  // Which branch runs is not known here: two different values are none.
  if (branches_ > 0 && known != variables_.end() && known->second != values)
    values = {unresolved(name)};
  variables_.insert_or_assign(name, std::move(values));
}

void ShellWords::append(const std::string& name, const Values& values, bool is_array) {
  Values now = variables_.contains(name) ? variables_[name] : Values{};
  if (is_array) {
    now.insert(now.end(), values.begin(), values.end());
  } else {
    if (now.empty()) now.emplace_back();
    now.front() += values.empty() ? "" : values.front();
  }
  for (const std::string& value : now) count(value.size() + 1);
  // What a branch appends is taken: scripts add options so.
  if (branches_ > 0 && !values.empty())
    note(fmt::format("what the branch appends to {}, \"{}\", is taken", name,
                     finished(values.front()).text));
  variables_.insert_or_assign(name, std::move(now));
}

std::optional<ShellWords::Values> ShellWords::value_of(const std::string& name) const {
  const auto known = variables_.find(name);
  return known == variables_.end() ? std::nullopt : std::optional(known->second);
}

std::string ShellWords::read_balanced(char open, char close) {
  std::string inner;
  int depth = 1;
  while (!at_end()) {
    const char c = peek();
    if (c == open) ++depth;
    if (c == close && --depth == 0) break;
    inner += c;
    advance();
  }
  if (!at_end()) advance();
  count(inner.size());
  return inner;
}

std::string ShellWords::expanded(std::string text, char quote, int depth) {
  if (depth > limits_.max_depth) refuse("its expansions are nested too deeply");
  std::swap(text, text_);
  const std::size_t at = std::exchange(at_, 0);
  const int line = line_;
  std::string joined;
  while (!at_end()) {
    for (const std::string& part : read_quoted_part(quote, depth + 1)) joined += part;
  }
  std::swap(text, text_);
  at_ = at;
  line_ = line;
  count(joined.size());
  return joined;
}

ShellWords::Values ShellWords::expand_braces(int depth) {
  const std::string inner = read_balanced('{', '}');
  if (inner.starts_with('#')) return {unresolved("${" + inner + "}")};
  std::size_t end = 0;
  while (end < inner.size() && is_name_part(inner[end])) ++end;
  const std::string name = inner.substr(0, end);
  std::string rest = inner.substr(end);
  std::optional<Values> value = value_of(name);
  if (rest.starts_with("[@]") || rest.starts_with("[*]")) {
    rest.erase(0, 3);
    if (rest.empty()) return value ? *value : Values{unresolved(name)};
  }
  const bool is_empty =
      !value || (rest.starts_with(':') && (value->empty() || value->front().empty()));
  const std::string_view op = std::string_view(rest).substr(rest.starts_with(':') ? 1 : 0);
  if (rest.empty()) return value ? *value : unset(name);
  if (op.starts_with('-') || op.starts_with('=')) {
    if (!is_empty) return *value;
    Values fallback{expanded(std::string(op.substr(1)), kUnquoted, depth)};
    if (op.front() == '=') assign(name, fallback);
    return fallback;
  }
  if (op.starts_with('+'))
    return {is_empty ? "" : expanded(std::string(op.substr(1)), kUnquoted, depth)};
  if (op.starts_with('?') && value) return *value;
  if (rest == "##*/" && value && !value->empty()) {
    const std::string& whole = value->front();
    return {whole.substr(whole.rfind('/') + 1)};
  }
  return {unresolved("${" + inner + "}")};
}

ShellWords::Values ShellWords::unset(const std::string& name) {
  if (name == "@" || name == "*") return {};
  return {unresolved(name)};
}

ShellWords::Values ShellWords::expand_dollar(int depth) {
  if (depth > limits_.max_depth) refuse("its expansions are nested too deeply");
  ++at_;  // the dollar
  const char c = peek();
  if (c == '{') {
    ++at_;
    return expand_braces(depth + 1);
  }
  if (c == '(' && peek(1) == '(') {
    at_ += 2;
    const std::string sum = read_balanced('(', ')');
    if (peek() == ')') ++at_;
    const std::optional<std::int64_t> value =
        evaluate_arithmetic(sum, [&](const std::string& name) -> std::optional<std::string> {
          const std::optional<Values> known = value_of(name);
          return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
        });
    return {value ? std::to_string(*value) : unresolved("$((" + sum + "))")};
  }
  if (c == '(') {
    ++at_;
    return {unresolved("$(" + read_balanced('(', ')') + ")")};
  }
  if (is_name_start(c)) {
    std::string name;
    while (is_name_part(peek())) name += text_[at_++];
    const std::optional<Values> value = value_of(name);
    if (!value) return unset(name);
    return value->empty() ? Values{} : Values{value->front()};
  }
  if (c != '\0' && (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
                    std::string_view("@*#?$!-").find(c) != std::string_view::npos)) {
    ++at_;
    return c == '@' || c == '*' ? Values{} : Values{unresolved(std::string("$") + c)};
  }
  return {"$"};
}

std::string ShellWords::read_backticks() {
  ++at_;
  std::string inner;
  while (!at_end() && peek() != '`') {
    inner += peek();
    advance();
  }
  if (!at_end()) ++at_;
  count(inner.size());
  return unresolved("$(" + inner + ")");
}

ShellWords::Values ShellWords::read_quoted_part(char quote, int depth) {
  const char c = peek();
  if (c == '$') return expand_dollar(depth);
  if (c == '`') return {read_backticks()};
  if (c == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$' || peek(1) == '`')) {
    const std::string escaped(1, peek(1));
    at_ += 2;
    return {escaped};
  }
  if (c == '\\' && peek(1) == '\n') {
    ++at_;
    advance();
    return {};
  }
  if (quote == kUnquoted && (c == '"' || c == '\'')) {  // quotes within ${X:-"y"}
    ++at_;
    return {};
  }
  advance();
  return {std::string(1, c)};
}

bool ShellWords::ends_word(char c) {
  return c == '\0' || is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' ||
         c == ')' || c == '<' || c == '>';
}

ShellWords::Values ShellWords::read_word(bool& quoted) {
  Values fields;
  std::string current;
  bool started = false;
  const auto finish = [&] {
    if (started) fields.push_back(std::move(current));
    current.clear();
    started = false;
  };
  const auto join = [&](const Values& values, bool splits) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) finish();
      if (!splits) {
        current += values[i];
        started = true;
        continue;
      }
      bool in_mark = false;  // $(a b) is one unresolved part
      for (const char c : values[i]) {
        in_mark = c == kOpen || (in_mark && c != kClose);
        if (!in_mark && (is_blank(c) || c == '\n')) {
          finish();
        } else {
          current += c;
          started = true;
        }
      }
    }
  };
  while (!at_end()) {
    const char c = peek();
    if (c == '\\') {
      if (skip_continuation()) break;
      ++at_;
      if (!at_end()) {
        current += peek();
        started = true;
        advance();
      }
    } else if (c == '\'') {
      ++at_;
      quoted = started = true;
      while (!at_end() && peek() != '\'') {
        current += peek();
        advance();
      }
      if (!at_end()) ++at_;
    } else if (c == '"') {
      ++at_;
      quoted = started = true;
      while (!at_end() && peek() != '"') join(read_quoted_part('"', 0), false);
      if (!at_end()) ++at_;
    } else if (c == '$' && (peek(1) == '\'' || peek(1) == '"')) {
      ++at_;
    } else if (c == '$') {
      // NAME=$X is not split.
      const bool assigns = fields.empty() && !assignment_in(current).name.empty();
      join(expand_dollar(0), !assigns);
    } else if (c == '`') {
      join({read_backticks()}, false);
    } else if (ends_word(c)) {
      break;
    } else {
      current += c;
      started = true;
      ++at_;
    }
  }
  finish();
  for (const std::string& field : fields) count(field.size() + 1);
  return fields;
}

}  // namespace memfathom
