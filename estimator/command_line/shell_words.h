// ShellWords: the words of a shell script from a cursor on, with variables and quotes expanded as
// far as the script itself says what they are.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/command_line/shell.h"

namespace memfathom {

// A part of a text that stays unresolved while it is assigned and split, marked as such.
std::string unresolved(std::string_view name);
// The characters that mark it stand for nothing else in a script.
std::string without_marks(std::string_view script);
// With the marks replaced by $NAME.
ShellWord finished(std::string_view text);

bool is_shell_name(std::string_view text);
bool is_blank(char c);

// NAME=value or NAME+=value; the name is empty if it is neither.
struct Assignment {
  std::string name;
  bool appends = false;
  std::size_t value_at = 0;
};

Assignment assignment_in(std::string_view text);

class ShellWords {
 protected:
  using Values = std::vector<std::string>;
  static constexpr char kUnquoted = '\0';
  static constexpr char kHereDocument = 'h';

  ShellWords(std::string text, const std::string& file, const ShellLimits& limits)
      : text_(std::move(text)), file_(file), limits_(limits) {}

  // Of the text at the cursor.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool at_end() const { return at_ >= text_.size(); }
  void advance();
  // An assumption, with its line; the first twenty are kept.
  void note(std::string text);
  [[noreturn]] void refuse(std::string_view reason) const;
  // A backslash at the end of a line continues it, also with blanks behind it.
  bool skip_continuation();
  void skip_blanks();
  void skip_comment();

  // Within a branch two different values are none: which one runs is not known here.
  void assign(const std::string& name, Values values);
  void append(const std::string& name, const Values& values, bool is_array);
  void forget(const std::string& name);
  std::optional<Values> value_of(const std::string& name) const;
  // Up to the closing parenthesis; at_ is behind the opening one.
  std::string read_balanced(char open, char close);
  // The text of ${...} behind its operator, itself expanded.
  // kUnquoted drops its quotes, kHereDocument keeps them.
  std::string expanded(std::string text, char quote, int depth);
  static bool ends_word(char c);
  // A word as the fields that it becomes: none, one or many. `quoted` tells whether any of it was
  // quoted; such a word is no keyword.
  Values read_word(bool& quoted);

  std::string text_;
  const std::string& file_;
  const ShellLimits& limits_;
  std::size_t at_ = 0;  // the cursor
  int line_ = 1;
  int branches_ = 0;                // open ones: of if and case
  std::vector<std::string> notes_;  // what was assumed

 private:
  void count(std::size_t bytes);
  // One character or expansion inside double quotes, a here-document or ${X:-...}.
  Values read_quoted_part(char quote, int depth);
  std::string read_backticks();
  Values expand_dollar(int depth);
  static Values unset(const std::string& name);
  Values expand_braces(int depth);

  std::size_t expanded_ = 0;  // bytes
  std::map<std::string, Values> variables_;
};

}  // namespace memfathom
