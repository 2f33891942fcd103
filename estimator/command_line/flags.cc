#include "estimator/command_line/flags.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxKey = 120;
constexpr long kMaxDots = 8;

bool is_flag(const std::string& word) {
  if (word.size() < 2 || word.front() != '-') return false;
  const auto second = static_cast<unsigned char>(word[1]);
  return word[1] == '-' ? word.size() > 2 : std::isalpha(second) != 0;
}

// key=value of Hydra and OmegaConf, with + or ++ in front; npos if it is none.
std::size_t override_at(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return std::string::npos;
  const std::size_t start = std::min(word.find_first_not_of('+'), equals);
  const bool is_key = std::all_of(
      word.begin() + static_cast<long>(start), word.begin() + static_cast<long>(equals),
      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; });
  return is_key && std::isalpha(static_cast<unsigned char>(word[start])) != 0 ? equals
                                                                              : std::string::npos;
}

std::string key_of(std::string_view word) {
  std::string key(word.substr(std::min(word.find_first_not_of("-+"), word.size())));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool is_document_key(const std::string& key) {
  return !key.empty() && key.size() <= kMaxKey && key.front() != '.' && key.back() != '.' &&
         key.find("..") == std::string::npos &&
         std::count(key.begin(), key.end(), '.') <= kMaxDots &&
         std::all_of(key.begin(), key.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

bool is_number(const std::string& word) { return parse_number<double>(word).has_value(); }

bool is_path(const std::string& word) {
  return word.starts_with('/') || word.starts_with("./") || word.starts_with("../") ||
         word.starts_with("~/");
}

// `--batch-size 256 /data/imagenet`: the folder is an argument of the script. The values of a list
// are of one kind.
bool may_be_of_one_list(const std::string& first, const std::string& next) {
  return is_number(first) == is_number(next) && (is_path(first) || !is_path(next));
}

class FlagReader {
 public:
  FlagReader(std::span<const ShellWord> words, const std::string& file)
      : words_(words), file_(file) {}

  Flags run() {
    flags_.tree = parse_yaml("{}", file_, 0);
    for (at_ = 0; at_ < words_.size();) read_one();
    return std::move(flags_);
  }

 private:
  void read_one() {
    const ShellWord& word = words_[at_++];
    if (word.text.empty() || word.text == "--") return;
    if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      if (equals != std::string::npos) {
        set(key_of(word.text.substr(0, equals)), {{word.text.substr(equals + 1), word.unresolved}});
      } else {
        set(key_of(word.text), values());
      }
      return;
    }
    if (const std::size_t equals = override_at(word.text); equals != std::string::npos) {
      set(key_of(word.text.substr(0, equals)), {{word.text.substr(equals + 1), word.unresolved}});
      return;
    }
    if (word.unresolved.empty()) {
      flags_.positionals.push_back(word.text);
    } else {
      flags_.unresolved.push_back({"", word.text});
    }
  }

  std::vector<ShellWord> values() {
    std::vector<ShellWord> values;
    while (at_ < words_.size() && !is_flag(words_[at_].text) &&
           (values.empty() || override_at(words_[at_].text) == std::string::npos)) {
      const bool is_known =
          !values.empty() && values.front().unresolved.empty() && words_[at_].unresolved.empty();
      if (is_known && !may_be_of_one_list(values.front().text, words_[at_].text)) break;
      // $ARGS behind a value is more arguments, which are unknown.
      if (!values.empty() && !words_[at_].unresolved.empty() && words_[at_].text.starts_with('$'))
        break;
      values.push_back(words_[at_++]);
    }
    return values;
  }

  void set(std::string key, const std::vector<ShellWord>& values) {
    for (const ShellWord& value : values) {
      if (value.unresolved.empty()) continue;
      flags_.unresolved.push_back({key, value.text});
      return;
    }
    Node node;
    if (values.empty()) {
      const bool negates = key.starts_with("no_") && key.size() > 3;
      if (negates) key.erase(0, 3);
      node = Node::boolean(!negates);
    } else if (values.size() == 1) {
      node = value_of_word(values.front().text, file_);
    } else {
      node = Node::list();
      for (const ShellWord& value : values) node.append(value_of_word(value.text, file_));
    }
    if (!is_document_key(key)) {
      flags_.unreadable.push_back(key);
      return;
    }
    try {
      flags_.tree.assign(key, std::move(node));
    } catch (const Error&) {  // --model x and --model.y z
      flags_.unreadable.push_back(key);
    }
  }

  std::span<const ShellWord> words_;
  std::string file_;
  std::size_t at_ = 0;
  Flags flags_;
};

}  // namespace

Node value_of_word(const std::string& text, const std::string& file) {
  if (text == "None" || text == "null" || text.empty()) return {};
  if (text == "true" || text == "True" || text == "TRUE") return Node::boolean(true);
  if (text == "false" || text == "False" || text == "FALSE") return Node::boolean(false);
  if (const std::optional<std::int64_t> whole = parse_number<std::int64_t>(text))
    return Node::integer(*whole);
  if (const std::optional<double> number = parse_number<double>(text)) return Node::number(*number);
  if (text.front() == '{' || text.front() == '[') {
    try {
      return parse_yaml(text, file, 0, {.max_file_bytes = 1 << 16, .max_tree_bytes = 1 << 20});
    } catch (const Error&) {
      return Node::string(text);
    }
  }
  return Node::string(text);
}

Flags read_flags(std::span<const ShellWord> words, const std::string& file) {
  return FlagReader(words, file).run();
}

}  // namespace memfathom
