#include "estimator/command_line/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "core/error.h"
#include "estimator/command_line/shell_words.h"

namespace memfathom {
namespace {

// Variables that launchers and the allocator read.
constexpr auto kWatchedVariables = std::to_array<std::string_view>(
    {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "NPROC_PER_NODE", "NNODES",
     "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "FORCE_TORCHRUN", "MAX_PIXELS"});

class ShellReader : private ShellWords {
 public:
  ShellReader(std::string text, const std::string& file, const ShellLimits& limits)
      : ShellWords(std::move(text), file, limits) {}

  ShellScript run() {
    while (at_ < text_.size()) read_command();
    script_.notes = std::move(notes_);
    return std::move(script_);
  }

 private:
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
      begin_block(word == "if" || word == "case");
      if (word == "case") read_case_subject();
      return true;
    }
    if (word == "for") {
      read_loop();
      return true;
    }
    if (word == "fi" || word == "esac" || word == "done") {
      end_block();
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

  void begin_block(bool is_branch) {
    blocks_.push_back(is_branch);
    if (is_branch) ++branches_;
  }

  void end_block() {
    if (blocks_.empty()) return;
    if (blocks_.back()) --branches_;
    blocks_.pop_back();
  }

  void read_case_subject() {
    skip_blanks();
    bool quoted = false;
    read_word(quoted);
  }

  // for NAME in a b c: the first value is taken, and said.
  void read_loop() {
    begin_block(false);
    skip_blanks();
    bool quoted = false;
    const Values name = read_word(quoted);
    skip_blanks();
    if (name.empty() || !is_shell_name(name.front())) return;
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
    if (values.size() > 1)
      note(fmt::format("of the loop over {}, the first value, {}, is taken", name.front(),
                       finished(values.front()).text));
    forget(name.front());
    assign(name.front(), {values.front()});
  }

  void finish_command(const Values& words,
                      const std::vector<std::pair<Assignment, Values>>& assignments, int line) {
    if (!pending_.empty() && !output_.empty()) {
      for (HereDocument& document : pending_) document.target = output_;
    }
    if (!words.empty() && words.front() == "read" && is_shell_name(words.back())) {
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
      for (const std::string& name : words) forget(name);
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

  std::vector<bool> blocks_;  // open ones; true: of if or case, false: of a loop
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
                fmt::format("{}: it contains NUL bytes, so it is not a shell script", file));
  return ShellReader(without_marks(text), file, limits).run();
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
