#include "core/wrap.h"

#include <algorithm>

#include "core/utf8.h"

namespace memfathom {
namespace {

constexpr std::size_t kHangingIndent = 2;
constexpr std::size_t kVerbatimIndent = 4;

struct Piece {
  std::string_view text;
  std::size_t spaces = 0;  // before it, unless a line begins here
};

bool closes(std::string_view character) {
  constexpr std::string_view kClosing = "，。；：、）》」』】！？％,.;:)]%!?";
  return kClosing.find(character) != std::string_view::npos;
}

bool opens(std::string_view character) {
  constexpr std::string_view kOpening = "（《「『【([";
  return kOpening.find(character) != std::string_view::npos;
}

bool is_wide(std::string_view character) { return display_width(character) == 2; }

// Whether a line may end between two characters without a space between them.
bool may_break(std::string_view before, std::string_view after) {
  return (is_wide(before) || is_wide(after)) && !opens(before) && !closes(after);
}

// Whether a space is that between a number and its unit: "607.3 %", "12.00 GiB".
bool joins_unit(std::string_view before, std::string_view after) {
  if (before.empty() || before.front() < '0' || before.front() > '9') return false;
  return after.starts_with('%') || after.substr(0, 3).find("iB") == 1;
}

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::string_view before;
  std::size_t start = 0;
  std::size_t spaces = 0;
  const auto end_piece = [&](std::size_t end) {
    if (end > start) {
      pieces.push_back({text.substr(start, end - start), spaces});
      spaces = 0;
    }
    start = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    next_code_point(text, at);
    const std::string_view character = text.substr(here, at - here);
    if (character == " " && !joins_unit(before, text.substr(at))) {
      end_piece(here);
      start = at;
      ++spaces;
      before = {};
      continue;
    }
    if (!before.empty() && may_break(before, character)) end_piece(here);
    before = character;
  }
  end_piece(text.size());
  return pieces;
}

// Lines of at most `columns`, the first of at most `first`.
std::vector<std::string> filled(std::string_view text, std::size_t first, std::size_t columns) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const Piece& piece : pieces_of(text)) {
    const std::size_t needed = display_width(piece.text);
    const std::size_t room = lines.size() > 1 ? columns : first;
    if (lines.empty() || width + piece.spaces + needed > room) {
      lines.emplace_back(piece.text);
      width = needed;
      continue;
    }
    lines.back().append(piece.spaces, ' ').append(piece.text);
    width += piece.spaces + needed;
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

void append_wrapped(std::string& result, std::string_view line, std::size_t columns) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent >= kVerbatimIndent || display_width(line) <= columns) {
    result += line;
    return;
  }
  const std::size_t hanging = indent + kHangingIndent;
  std::size_t before = indent;
  for (const std::string& part :
       filled(line.substr(indent), columns - indent, columns - std::min(columns, hanging))) {
    if (before == hanging) result += '\n';
    result.append(before, ' ').append(part);
    before = hanging;
  }
}

}  // namespace

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns) {
  return filled(text, columns, columns);
}

std::size_t unbroken_width(std::string_view text) {
  std::size_t widest = 0;
  for (const Piece& piece : pieces_of(text)) widest = std::max(widest, display_width(piece.text));
  return widest;
}

std::string wrapped(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    append_wrapped(result, text.substr(0, end), columns);
    if (end == std::string_view::npos) break;
    result += '\n';
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace memfathom
