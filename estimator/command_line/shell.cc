#include "estimator/command_line/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "core/error.h"
#include "estimator/command_line/shell_arithmetic.h"

namespace memfathom {
namespace {

// Variables that launchers and the allocator read.
constexpr auto kWatchedVariables = std::to_array<std::string_view>(
    {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "NPROC_PER_NODE", "NNODES",
     "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "FORCE_TORCHRUN", "MAX_PIXELS"});

// An unresolved part of a text, while it is assigned and split: kOpen NAME kClose.
constexpr char kOpen = '\x01';
constexpr char kClose = '\x02';

std::string unresolved(std::string_view name) {
  std::string mark;
  for (const char c : name) mark += c == kOpen || c == kClose ? '?' : c;
  return kOpen + mark + kClose;
}

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool is_name(std::string_view text) {
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
    word.text += is_name(name) ? "$" + name : name;
    if (std::find(word.unresolved.begin(), word.unresolved.end(), name) == word.unresolved.end())
      word.unresolved.push_back(name);
    i = end;
  }
  return word;
}

// NAME=value or NAME+=value; the name is empty if it is neither.
struct Assignment {
  std::string name;
  bool appends = false;
  std::size_t value_at = 0;
};

Assignment assignment_in(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return {};
  const bool appends = text[equals - 1] == '+';
  const std::string_view name = text.substr(0, equals - (appends ? 1 : 0));
  if (!is_name(name)) return {};
  return {std::string(name), appends, equals + 1};
}

class ShellReader {
 public:
  ShellReader(std::string text, const std::string& file, const ShellLimits& limits)
      : text_(std::move(text)), file_(file), limits_(limits) {}

  ShellScript run() {
    while (at_ < text_.size()) read_command();
    return std::move(script_);
  }

 private:
  using Values = std::vector<std::string>;
  static constexpr char kUnquoted = '\0';
  static constexpr char kHereDocument = 'h';

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool at_end() const { return at_ >= text_.size(); }

  void advance() {
    if (peek() == '\n') ++line_;
    ++at_;
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", file_, line_, reason));
  }

  void count(std::size_t bytes) {
    expanded_ += bytes;
    if (expanded_ > limits_.max_expanded_bytes)
      refuse(
          fmt::format("the script's variables expand to more than {} bytes; give one command "
                      "after -- instead",
                      limits_.max_expanded_bytes));
  }

  // A backslash at the end of a line continues it, also with blanks behind it.
  bool skip_continuation() {
    if (peek() != '\\') return false;
    std::size_t ahead = 1;
    while (is_blank(peek(ahead))) ++ahead;
    if (peek(ahead) != '\n') return false;
    while (peek() != '\n') ++at_;
    advance();
    return true;
  }

  void skip_blanks() {
    while (!at_end()) {
      if (is_blank(peek())) {
        ++at_;
      } else if (!skip_continuation()) {
        return;
      }
    }
  }

  void skip_comment() {
    while (!at_end() && peek() != '\n') ++at_;
  }

  // ---- variables

  void assign(const std::string& name, Values values) {
    for (const std::string& value : values) count(value.size() + 1);
    const auto known = variables_.find(name);
    // Which branch runs is not known here: two different values are none.
    const bool in_branch = std::find(blocks_.begin(), blocks_.end(), 'i') != blocks_.end();
    if (in_branch && known != variables_.end() && known->second != values)
      values = {unresolved(name)};
    variables_.insert_or_assign(name, std::move(values));
  }

  void append(const std::string& name, const Values& values, bool is_array) {
    Values now = variables_.contains(name) ? variables_[name] : Values{};
    if (is_array) {
      now.insert(now.end(), values.begin(), values.end());
    } else {
      if (now.empty()) now.emplace_back();
      now.front() += values.empty() ? "" : values.front();
    }
    for (const std::string& value : now) count(value.size() + 1);
    // What a branch appends is taken: scripts add options so.
    variables_.insert_or_assign(name, std::move(now));
  }

  std::optional<Values> value_of(const std::string& name) const {
    const auto known = variables_.find(name);
    return known == variables_.end() ? std::nullopt : std::optional(known->second);
  }

  // ---- expansions; each returns fields that were separate words of an array

  // Up to the closing parenthesis; at_ is behind the opening one.
  std::string read_balanced(char open, char close) {
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

  // The text of ${...} behind `operator`, itself expanded.
  // kUnquoted drops its quotes, kHereDocument keeps them.
  std::string expanded(std::string text, char quote, int depth) {
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

  Values expand_braces(int depth) {
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

  static Values unset(const std::string& name) {
    if (name == "@" || name == "*") return {};
    return {unresolved(name)};
  }

  Values expand_dollar(int depth) {
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

  std::string read_backticks() {
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

  // One character or expansion inside double quotes, a here-document or ${X:-...}.
  Values read_quoted_part(char quote, int depth) {
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

  static bool ends_word(char c) {
    return c == '\0' || is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' ||
           c == ')' || c == '<' || c == '>';
  }

  // A word as the fields that it becomes: none, one or many. `quoted` tells whether any of it was
  // quoted; such a word is no keyword.
  Values read_word(bool& quoted) {
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

  // ---- commands

  struct HereDocument {
    std::string end;
    std::string target;    // the file that `cat >` writes
    std::string variable;  // that `read` fills
    bool is_indented = false;
    bool is_literal = false;
  };

  // The bodies of the << that the line had; at_ is behind the newline.
  void read_here_documents() {
    for (const HereDocument& document : pending_) {
      std::string body;
      while (!at_end()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        if (document.is_indented)
          line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
        if (line == document.end) break;
        body += line + "\n";
      }
      if (!document.is_literal) body = expanded(body, kHereDocument, 1);
      if (!document.variable.empty()) assign(document.variable, {body});
      if (!document.target.empty())
        script_.files.insert_or_assign(document.target, finished(body).text);
    }
    pending_.clear();
  }

  // A redirection at at_: its target is read and, for `>`, remembered.
  void read_redirection() {
    if (peek() == '<' && peek(1) == '<' && peek(2) != '<') {
      HereDocument document;
      at_ += 2;
      if (peek() == '-') {
        document.is_indented = true;
        ++at_;
      }
      skip_blanks();
      const Values end = read_word(document.is_literal);
      if (!end.empty()) document.end = end.front();
      pending_.push_back(document);
      return;
    }
    const bool writes = peek() == '>';
    while (peek() == '<' || peek() == '>' || peek() == '&') ++at_;
    if (peek() == '(') {  // <(command)
      ++at_;
      read_balanced('(', ')');
      return;
    }
    skip_blanks();
    bool quoted = false;
    const Values target = read_word(quoted);
    if (writes && !target.empty()) output_ = finished(target.front()).text;
  }

  Values read_array() {
    Values values;
    ++at_;  // (
    while (!at_end() && peek() != ')') {
      if (peek() == '#') {
        skip_comment();
      } else if (is_blank(peek()) || peek() == '\n') {
        advance();
      } else if (!skip_continuation()) {
        bool quoted = false;
        const std::size_t before = at_;
        for (std::string& field : read_word(quoted)) values.push_back(std::move(field));
        if (at_ == before) advance();
      }
    }
    if (!at_end()) ++at_;
    return values;
  }

  // Reads up to the end of a simple command. Keywords only open and close blocks.
  void read_command() {
    Values words;
    std::vector<std::pair<Assignment, Values>> assignments;
    int first_line = line_;
    output_.clear();
    while (!at_end()) {
      skip_blanks();
      const char c = peek();
      if (c == '\0') break;
      if (c == '#') {
        skip_comment();
        continue;
      }
      if (c == '\n') {
        advance();
        finish_command(words, assignments, first_line);
        read_here_documents();
        return;
      }
      if (c == '&' && peek(1) == '>') {
        ++at_;
        read_redirection();
        continue;
      }
      if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        ++at_;
        break;
      }
      if (c == '<' || c == '>') {
        read_redirection();
        continue;
      }
      if (words.empty() && assignments.empty()) first_line = line_;
      bool quoted = false;
      const std::size_t before = at_;
      Values fields = read_word(quoted);
      if (at_ == before && fields.empty()) {
        advance();
        continue;
      }
      // 2>&1
      if (fields.size() == 1 && !quoted && (peek() == '>' || peek() == '<') &&
          fields.front().size() == 1 &&
          std::isdigit(static_cast<unsigned char>(fields.front().front())) != 0)
        continue;
      if (fields.empty()) continue;
      const Assignment assigned = assignment_in(fields.front());
      if (!assigned.name.empty() && (words.empty() || declares(words))) {
        if (peek() == '(' && fields.front().size() == assigned.value_at) {
          const Values values = read_array();
          if (assigned.appends) {
            append(assigned.name, values, true);
          } else {
            assign(assigned.name, values);
          }
          continue;
        }
        fields.front().erase(0, assigned.value_at);
        assignments.emplace_back(assigned, Values{fields.front()});
        continue;
      }
      if (words.empty() && !quoted && fields.size() == 1 && read_keyword(fields.front())) continue;
      words.insert(words.end(), fields.begin(), fields.end());
    }
    finish_command(words, assignments, first_line);
  }

  static bool declares(const Values& words) {
    return words.front() == "export" || words.front() == "declare" || words.front() == "local" ||
           words.front() == "readonly" || words.front() == "typeset";
  }

  // True if the word only opens, divides or closes a block.
  bool read_keyword(const std::string& word) {
    if (word == "if" || word == "case" || word == "while" || word == "until") {
      blocks_.push_back(word == "if" || word == "case" ? 'i' : 'l');
      if (word == "case") read_case_subject();
      return true;
    }
    if (word == "for") {
      read_loop();
      return true;
    }
    if (word == "fi" || word == "esac" || word == "done") {
      if (!blocks_.empty()) blocks_.pop_back();
      return true;
    }
    if (word == "[[") {
      const std::size_t end = text_.find("]]", at_);
      const std::size_t line_end = text_.find('\n', at_);
      if (end != std::string::npos && end < line_end) at_ = end + 2;
      return true;
    }
    static constexpr auto kOthers = std::to_array<std::string_view>(
        {"then", "else", "elif", "do", "{", "}", "!", "time", "exec", "eval", "in"});
    return std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
  }

  void read_case_subject() {
    skip_blanks();
    bool quoted = false;
    read_word(quoted);
  }

  // for NAME in a b c: the first value is taken, and said.
  void read_loop() {
    blocks_.push_back('l');
    skip_blanks();
    bool quoted = false;
    const Values name = read_word(quoted);
    skip_blanks();
    if (name.empty() || !is_name(name.front())) return;
    const std::size_t before = at_;
    const Values in = read_word(quoted);
    if (in.size() != 1 || in.front() != "in") {
      at_ = before;
      return;
    }
    Values values;
    for (skip_blanks(); !at_end() && !ends_word(peek()); skip_blanks()) {
      for (std::string& field : read_word(quoted)) values.push_back(std::move(field));
    }
    if (values.empty()) values.push_back(unresolved(name.front()));
    if (values.size() > 1 && script_.notes.size() < kMaxNotes)
      script_.notes.push_back(
          fmt::format("{}:{}: of the loop over {}, the first value, {}, is taken", file_, line_,
                      name.front(), finished(values.front()).text));
    variables_.insert_or_assign(name.front(), Values{values.front()});
  }

  void finish_command(const Values& words,
                      const std::vector<std::pair<Assignment, Values>>& assignments, int line) {
    if (!pending_.empty() && !output_.empty()) {
      for (HereDocument& document : pending_) document.target = output_;
    }
    if (!words.empty() && words.front() == "read" && is_name(words.back())) {
      for (HereDocument& document : pending_) document.variable = words.back();
      if (!pending_.empty()) return;
    }
    if (words.empty() || declares(words)) {
      for (const auto& [assigned, values] : assignments) {
        if (assigned.appends) {
          append(assigned.name, values, false);
        } else {
          assign(assigned.name, values);
        }
      }
      return;
    }
    if (words.front() == "unset") {
      for (const std::string& name : words) variables_.erase(name);
      return;
    }
    if (script_.commands.size() >= limits_.max_commands)
      refuse(fmt::format("the script has more than {} commands; give one of them after --",
                         limits_.max_commands));
    ShellCommand command;
    command.line = line;
    for (const std::string& word : words) command.words.push_back(finished(word));
    for (const std::string_view watched : kWatchedVariables) {
      const std::string name(watched);
      if (const std::optional<Values> value = value_of(name); value && !value->empty())
        command.environment.insert_or_assign(name, finished(value->front()));
    }
    for (const auto& [assigned, values] : assignments)
      command.environment.insert_or_assign(assigned.name, finished(values.front()));
    script_.commands.push_back(std::move(command));
  }

  static constexpr std::size_t kMaxNotes = 20;

  std::string text_;
  const std::string& file_;
  const ShellLimits& limits_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t expanded_ = 0;
  std::map<std::string, Values> variables_;
  std::vector<char> blocks_;  // i: if or case, l: a loop
  std::vector<HereDocument> pending_;
  std::string output_;
  ShellScript script_;
};

}  // namespace

ShellScript read_shell(std::string_view text, const std::string& file, const ShellLimits& limits) {
  if (text.size() > limits.max_text_bytes)
    throw Error(ErrorKind::kInput, fmt::format("{}: the script has {} bytes; at most {} are read",
                                               file, text.size(), limits.max_text_bytes));
  if (text.find('\0') != std::string_view::npos)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: it contains NUL bytes and is no shell script", file));
  std::string clean(text);
  std::replace(clean.begin(), clean.end(), kOpen, '?');
  std::replace(clean.begin(), clean.end(), kClose, '?');
  return ShellReader(std::move(clean), file, limits).run();
}

ShellCommand command_of(const std::vector<std::string>& words) {
  ShellCommand command;
  for (const std::string& word : words) {
    const Assignment assigned = assignment_in(word);
    if (command.words.empty() && !assigned.name.empty()) {
      command.environment.insert_or_assign(assigned.name,
                                           ShellWord{word.substr(assigned.value_at), {}});
    } else {
      command.words.push_back({word, {}});
    }
  }
  return command;
}

}  // namespace memfathom
