#include "estimator/command_line/shell_arithmetic.h"

#include <cctype>

#include "core/parse_number.h"

namespace memfathom {
namespace {

using Number = std::optional<std::int64_t>;

class Arithmetic {
 public:
  Arithmetic(std::string_view text,
             const std::function<std::optional<std::string>(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  Number run() {
    const Number value = sum(0);
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 64;

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  char next() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  static Number apply(char op, Number a, Number b) {
    if (!a || !b) return std::nullopt;
    std::int64_t result = 0;
    if (op == '+') return __builtin_add_overflow(*a, *b, &result) ? Number() : Number(result);
    if (op == '-') return __builtin_sub_overflow(*a, *b, &result) ? Number() : Number(result);
    if (op == '*') return __builtin_mul_overflow(*a, *b, &result) ? Number() : Number(result);
    if (*b == 0 || *b == -1) return std::nullopt;
    return op == '/' ? *a / *b : *a % *b;
  }

  Number sum(int depth) {
    Number value = product(depth);
    while (next() == '+' || next() == '-') {
      const char op = text_[at_++];
      value = apply(op, value, product(depth));
    }
    return value;
  }

  Number product(int depth) {
    Number value = atom(depth);
    while (next() == '*' || next() == '/' || next() == '%') {
      const char op = text_[at_++];
      value = apply(op, value, atom(depth));
    }
    return value;
  }

  Number atom(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    char c = next();
    if (c == '(') {
      ++at_;
      const Number value = sum(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return value;
    }
    if (c == '$') {
      ++at_;
      c = at_ < text_.size() ? text_[at_] : '\0';
      if (c == '{') ++at_;
    }
    std::string word;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      word += text_[at_++];
    if (c == '{') {
      if (at_ >= text_.size() || text_[at_] != '}') return std::nullopt;
      ++at_;
    }
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0)
      return parse_number<std::int64_t>(word);
    const std::optional<std::string> value = value_of_(word);
    return value ? parse_number<std::int64_t>(*value) : std::nullopt;
  }

  std::string_view text_;
  const std::function<std::optional<std::string>(const std::string&)>& value_of_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& value_of) {
  return Arithmetic(text, value_of).run();
}

}  // namespace memfathom
