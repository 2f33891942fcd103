#include "core/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "core/wrap.h"

namespace memfathom {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kBelowIndent = "    ";

const char* code_of(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kBold: return "1";
    case Style::kDim: return "2";
    case Style::kGood: return "32";
    case Style::kWarning: return "33";
    case Style::kBad: return "31";
  }
  return "";
}

std::string without_controls(std::string_view text) {
  std::string clean = printable(text);
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return clean;
}

std::string markdown_cell(std::string_view text) {
  std::string escaped;
  for (const char c : without_controls(text)) {
    // A cell is text: no column, no link or image, no code and no HTML.
    if (std::string_view("|\\[]`<").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// "-12.5", "+3 %" or "-1.20 GiB": a sign, digits and a unit.
bool is_quantity(std::string_view text) {
  text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0) return text.empty();  // a lone sign
  text.remove_prefix(digits);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text == "%" || std::all_of(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isalpha(c) != 0; });
}

// A spreadsheet would run it when it opens the file.
bool is_formula(std::string_view text) {
  if (text.empty()) return false;
  const char first = text.front();
  if (first == '+' || first == '-') return !is_quantity(text);
  return first == '=' || first == '@' || first == '\t' || first == '\r';
}

std::string csv_cell(std::string_view text) {
  const bool formula = is_formula(text);
  if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = formula ? "\"'" : "\"";  // an apostrophe makes a cell text
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string padded(std::string_view text, std::size_t width, Align align, Style style,
                   bool colour) {
  const std::string clean = without_controls(text);
  const std::string space(width - std::min(width, display_width(clean)), ' ');
  const std::string shown = styled(clean, style, colour);
  return align == Align::kRight ? space + shown : shown + space;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

void Table::add_row(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("a row of {} cells was added to a table of {} columns", cells.size(),
                            columns_.size()));
  }
  rows_.push_back({std::move(cells), rule_pending_});
  rule_pending_ = false;
}

void Table::add_rule() { rule_pending_ = true; }

std::size_t Table::Layout::total() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < width.size(); ++i) {
    if (!is_below[i]) sum += width[i] + kGap.size();
  }
  return sum - std::min(sum, kGap.size());
}

std::vector<std::size_t> Table::widths(std::size_t (*width_of)(std::string_view)) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool whole = columns_[i].align == Align::kRight;  // quantities
    std::size_t width = display_width(columns_[i].title);
    for (const Row& row : rows_) {
      const std::string cell = without_controls(row.cells[i].text);
      width = std::max(width, whole ? display_width(cell) : width_of(cell));
    }
    result.push_back(width);
  }
  return result;
}

Table::Layout Table::layout(std::size_t columns) const {
  Layout widest{widths(display_width), std::vector<bool>(columns_.size(), false)};
  if (columns == 0) return widest;
  Layout narrowest{widths(unbroken_width), widest.is_below};
  while (narrowest.total() > columns) {
    std::size_t chosen = 0;  // the first column stays: it says what a row is about
    const auto rank = [&](std::size_t i) {
      return std::pair(columns_[i].align == Align::kLeft, widest.width[i]);
    };
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      if (!narrowest.is_below[i] && (chosen == 0 || rank(i) >= rank(chosen))) chosen = i;
    }
    if (chosen == 0) break;
    narrowest.is_below[chosen] = true;
  }
  widest.is_below = narrowest.is_below;
  while (widest.total() > std::max(columns, narrowest.total())) {
    std::size_t chosen = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widest.is_below[i] || widest.width[i] <= narrowest.width[i]) continue;
      if (chosen == columns_.size() || widest.width[i] > widest.width[chosen]) chosen = i;
    }
    --widest.width[chosen];
  }
  return widest;
}

void Table::append_row(std::string& out, const Row& row, const Layout& layout, std::size_t columns,
                       bool colour) const {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string cell = without_controls(row.cells[i].text);
    const bool fits = display_width(cell) <= layout.width[i];
    cells.push_back(fits ? std::vector{cell} : wrapped_lines(cell, layout.width[i]));
    if (!layout.is_below[i]) height = std::max(height, cells.back().size());
  }
  for (std::size_t at = 0; at < height; ++at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (layout.is_below[i]) continue;
      if (i > 0) line += kGap;
      line += padded(at < cells[i].size() ? cells[i][at] : "", layout.width[i], columns_[i].align,
                     row.cells[i].style, colour);
    }
    append_line(out, line);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!layout.is_below[i] || row.cells[i].text.empty()) continue;
    const std::string named =
        fmt::format("{}: {}", columns_[i].title, without_controls(row.cells[i].text));
    for (const std::string& line : wrapped_lines(named, columns - kBelowIndent.size()))
      append_line(out, std::string(kBelowIndent) + styled(line, row.cells[i].style, colour));
  }
}

std::string Table::text(bool colour, std::size_t columns) const {
  const Layout chosen = layout(columns);
  const std::string rule(chosen.total(), '-');
  std::string out;
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (chosen.is_below[i]) continue;
    if (i > 0) line += kGap;
    line += padded(columns_[i].title, chosen.width[i], columns_[i].align, Style::kBold, colour);
  }
  append_line(out, line);
  append_line(out, rule);
  for (const Row& row : rows_) {
    if (row.rule_before) append_line(out, rule);
    append_row(out, row, chosen, columns, colour);
  }
  return out;
}

std::string Table::markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out += fmt::format(" {} |", markdown_cell(column.title));
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::kRight ? "---:|" : "---|";
  out += '\n';
  for (const Row& row : rows_) {
    out += '|';
    for (const Cell& cell : row.cells) out += fmt::format(" {} |", markdown_cell(cell.text));
    out += '\n';
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out += (i > 0 ? "," : "") + csv_cell(columns_[i].title);
  out += "\r\n";
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out += (i > 0 ? "," : "") + csv_cell(row.cells[i].text);
    out += "\r\n";
  }
  return out;
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

bool wants_colour(int file_descriptor) {
  const char* const no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* const term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(file_descriptor) == 1;
}

}  // namespace memfathom
