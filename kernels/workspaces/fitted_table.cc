#include "kernels/workspaces/fitted_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "core/error.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

constexpr std::string_view kHead =
    "# cuDNN's convolution workspaces as decision trees, fitted to the answers of the library.\n"
    "# Written by scripts/fit-cudnn-workspaces; change that, not this.\n"
    "#\n"
    "# tree COMPUTE_CAPABILITY DIRECTION BITS LAYOUT MEDIAN MEAN P90 (errors on held-out queries, "
    "in percent of input +\n"
    "# output + weight), then its nodes in preorder: FEATURE:THRESHOLD:RIGHT continues with the "
    "next node where the feature\n"
    "# is at most the threshold, else with node RIGHT of the tree; a single number is a leaf, a "
    "position in kWorkspaceForms.\n";
constexpr std::size_t kColumns = 118;

// Takes the first word off the text; empty at its end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

class TableParser {
 public:
  explicit TableParser(std::string_view file) : file_(file) {}

  FittedTable parse(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++line_;
      if (!line.starts_with('#')) add_line(line);
    }
    finish_tree();
    if (table_.trees.empty() || table_.provenance.cudnn_version.empty())
      fail("the table has no trees, or no version of cuDNN");
    return std::move(table_);
  }

 private:
  void add_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view first = take_word(rest);
    if (first == "cudnn") {
      table_.provenance.cudnn_version = std::string(take_word(rest));
    } else if (first == "queries") {
      table_.provenance.training_queries = number<int>(take_word(rest));
      table_.provenance.held_out_queries = number<int>(take_word(rest));
    } else if (first == "tree") {
      finish_tree();
      add_tree(rest);
    } else {
      if (table_.trees.empty()) fail(fmt::format("\"{}\" before the first tree", first));
      for (std::string_view word = first; !word.empty(); word = take_word(rest)) add_node(word);
    }
  }

  void add_tree(std::string_view words) {
    FittedTree tree{};
    tree.compute = number<std::int16_t>(take_word(words));
    tree.kind = direction(take_word(words));
    tree.is_16bit = choice(take_word(words), "32", "16");
    tree.channels_last = choice(take_word(words), "nchw", "nhwc");
    tree.median_error = number<float>(take_word(words));
    tree.mean_error = number<float>(take_word(words));
    tree.p90_error = number<float>(take_word(words));
    tree.first_node = static_cast<std::int32_t>(table_.nodes.size());
    table_.trees.push_back(tree);
  }

  void add_node(std::string_view word) {
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) {
      table_.nodes.push_back({-1, 0, number<std::int16_t>(word)});
      return;
    }
    const std::size_t second = std::min(word.find(':', colon + 1), word.size());
    table_.nodes.push_back({number<std::int8_t>(word.substr(0, colon)),
                            number<float>(word.substr(colon + 1, second - colon - 1)),
                            number<std::int16_t>(word.substr(std::min(second + 1, word.size())))});
  }

  // Every step of a walk through the last tree ends at a leaf with a form.
  void finish_tree() const {
    if (table_.trees.empty()) return;
    const std::span<const FittedNode> nodes =
        std::span(table_.nodes).subspan(static_cast<std::size_t>(table_.trees.back().first_node));
    if (nodes.empty()) fail("a tree has no nodes");
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      const FittedNode& node = nodes[at];
      const auto right = static_cast<std::size_t>(std::max<std::int16_t>(node.right, 0));
      const bool is_whole = node.feature < 0 ? node.right >= 0 && right < kWorkspaceForms.size()
                                             : node.feature < kConvolutionFeatureCount &&
                                                   right > at + 1 && right < nodes.size();
      if (!is_whole) fail(fmt::format("node {} of the previous tree has no target", at));
    }
  }

  ConvolutionKind direction(std::string_view word) const {
    for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                       ConvolutionKind::kWeightGradient}) {
      if (word == to_string(kind)) return kind;
    }
    fail(fmt::format("\"{}\" is not a convolution direction", word));
  }

  // Whether the word is the second of two.
  bool choice(std::string_view word, std::string_view no, std::string_view yes) const {
    if (word != no && word != yes) fail(fmt::format("\"{}\" is neither {} nor {}", word, no, yes));
    return word == yes;
  }

  template <typename Number>
  Number number(std::string_view word) const {
    const std::optional<Number> value = parse_number<Number>(word);
    if (!value) fail(fmt::format("\"{}\" is not a number of this place", word));
    return *value;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", file_, line_, why));
  }

  std::string_view file_;
  int line_ = 0;
  FittedTable table_;
};

const EmbeddedFile* file_of(std::string_view cudnn_version) {
  const std::string name = fmt::format("cudnn-{}.txt", cudnn_version);
  const std::span<const EmbeddedFile> files = fitted_table_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const EmbeddedFile& one) { return one.name == name; });
  return file == files.end() ? nullptr : &*file;
}

// The nodes on lines of at most kColumns, indented by two.
void write_nodes(std::span<const FittedNode> nodes, std::string& text) {
  constexpr std::string_view kIndent = " ";
  std::size_t column = kIndent.size();
  text += kIndent;
  for (const FittedNode& node : nodes) {
    const std::string word =
        node.feature < 0 ? fmt::format(" {}", node.right)
                         : fmt::format(" {}:{:#.6g}:{}", node.feature, node.threshold, node.right);
    if (column + word.size() > kColumns) {
      text.append("\n").append(kIndent);
      column = kIndent.size();
    }
    text += word;
    column += word.size();
  }
  text += '\n';
}

}  // namespace

FittedTable parse_fitted_table(std::string_view text, std::string_view file) {
  return TableParser(file).parse(text);
}

std::string to_text(const FittedTable& table) {
  std::string text =
      fmt::format("{}cudnn {}\nqueries {} {}\n", kHead, table.provenance.cudnn_version,
                  table.provenance.training_queries, table.provenance.held_out_queries);
  for (std::size_t i = 0; i < table.trees.size(); ++i) {
    const FittedTree& tree = table.trees[i];
    text +=
        fmt::format("tree {} {} {} {} {:.3f} {:.3f} {:.3f}\n", tree.compute, to_string(tree.kind),
                    tree.is_16bit ? 16 : 32, tree.channels_last ? "nhwc" : "nchw",
                    tree.median_error, tree.mean_error, tree.p90_error);
    const auto first = static_cast<std::size_t>(tree.first_node);
    const std::size_t end = i + 1 < table.trees.size()
                                ? static_cast<std::size_t>(table.trees[i + 1].first_node)
                                : table.nodes.size();
    write_nodes(std::span(table.nodes).subspan(first, end - first), text);
  }
  return text;
}

bool has_fitted_table(std::string_view cudnn_version) { return file_of(cudnn_version) != nullptr; }

const FittedTable& fitted_table(std::string_view cudnn_version) {
  static std::mutex mutex;
  static std::map<std::string, FittedTable, std::less<>> parsed;  // its elements stay in place
  const std::lock_guard lock(mutex);
  if (const auto known = parsed.find(cudnn_version); known != parsed.end()) return known->second;
  const EmbeddedFile* file = file_of(cudnn_version);
  if (file == nullptr) {
    throw Error(ErrorKind::kInternal,
                fmt::format("there is no fitted table of cuDNN {}", cudnn_version));
  }
  return parsed.emplace(cudnn_version, parse_fitted_table(file->text, file->name)).first->second;
}

}  // namespace memfathom
